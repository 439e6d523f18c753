-- Health of StatefulSets for Argo CD, with the conditions of opt-ins (docs/opt-ins.md). Put it into
-- the ConfigMap argocd-cm under resource.customizations.health.apps_StatefulSet.
local status = obj.status or {}
if (status.observedGeneration or 0) ~= (obj.metadata.generation or 0) then
  return { status = "Progressing", message = "the controller has not seen the last change" }
end

for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "Stalled" and condition.status == "True" then
    return { status = "Degraded", message = condition.message }
  end
  if condition.type == "Reconciling" and condition.status == "True" then
    return { status = "Progressing", message = condition.message }
  end
  if condition.type == "Progressing" and condition.status == "Unknown" then
    if condition.reason == "Paused" or condition.reason == "RolloutLimit" then
      return { status = "Suspended", message = condition.message }
    end
  end
end

-- Sets without these conditions: as Argo CD counts.
local replicas = obj.spec.replicas or 1
local ready = status.readyReplicas or 0
local updated = status.updatedReplicas or 0
local strategy = obj.spec.updateStrategy or {}
if strategy.type == "OnDelete" then
  return { status = "Healthy", message = ready .. " pods are ready" }
end
if ready < replicas then
  return { status = "Progressing", message = ready .. " of " .. replicas .. " pods are ready" }
end
local partition = (strategy.rollingUpdate or {}).partition or 0
if partition > 0 then
  if updated < replicas - partition then
    return { status = "Progressing", message = updated .. " of " .. replicas - partition .. " pods are updated" }
  end
  return { status = "Healthy", message = updated .. " pods above the partition are updated" }
end
if status.updateRevision ~= status.currentRevision then
  return { status = "Progressing", message = updated .. " of " .. replicas .. " pods are updated" }
end
return { status = "Healthy", message = ready .. " pods are ready" }
