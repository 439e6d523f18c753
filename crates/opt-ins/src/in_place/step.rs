//! The next write of a pod that is updated in place.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use statefulset_controller_util::live::Live;
use statefulset_controller_util::pod::{Pod, REVISION_LABEL};

use super::InPlace;
use super::amounts::{Amounts, CONTAINERS, QosClass};
use super::change::{Change, ContainerName, containers};
use super::mark::{self, Mark};
use super::reason::{Reason, Said};
use crate::due::{after, time_left};
use crate::values::InPlaceScope;

#[cfg(test)]
mod tests;

/// The change of a running pod to the revision of this name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PodUpdate<'a> {
    pub(crate) change: &'a Change,
    pub(crate) revision: &'a str,
    pub(crate) in_place: InPlace,
    pub(crate) now: Timestamp,
}

/// The next step of a pod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// The pod is marked: it is in flight from now on.
    Mark,
    /// Its containers get other resources, by this patch of its spec.
    Resize(Value),
    /// Its node carries out the resize, which may last until this time.
    Wait(Timestamp),
    /// The pod has the resources: it gets its labels and annotations, and the revision's name.
    Finish,
}

impl PodUpdate<'_> {
    /// Returns the next step of a pod that was read live.
    ///
    /// # Errors
    ///
    /// The reason for which it is replaced.
    pub(crate) fn next(&self, live: &Live<Pod>) -> Result<Step, Reason> {
        let mark = Mark::of(live);
        if mark.is_none() && !self.change.resizes {
            return Ok(Step::Finish);
        }
        // A dry sync reads reduced pods: nothing can be said about the rest.
        if containers(&live.json).next().is_none() {
            return Ok(Step::Wait(Timestamp::MAX));
        }
        let mark = mark.filter(|mark| mark.revision == self.revision);
        let since = mark.and_then(|mark| mark.since);
        if let Some(spec) = self.resize(&live.json)? {
            return Ok(since.map_or(Step::Mark, |_| Step::Resize(spec)));
        }
        let state = ResizeState::of(&live.json, &self.change.amounts);
        if let ResizeState::Infeasible(said) = state {
            return Err(Reason::Infeasible(said));
        }
        if matches!(state, ResizeState::Applied) {
            return Ok(Step::Finish);
        }
        let Some(since) = since else {
            return Ok(Step::Mark);
        };
        let until = after(since, self.in_place.timeout);
        if time_left(until, self.now).is_some() {
            return Ok(Step::Wait(until));
        }
        let seconds = self.now.as_second().saturating_sub(since.as_second());
        let seconds = u64::try_from(seconds).unwrap_or(0);
        Err(match state {
            ResizeState::Deferred(said) => Reason::Deferred { seconds, said },
            ResizeState::InProgress(said) => Reason::InProgress { seconds, said },
            ResizeState::Infeasible(said) => Reason::Infeasible(said),
            ResizeState::Applied => return Ok(Step::Finish),
        })
    }

    /// Marks the pod.
    pub(crate) fn mark(&self, pod: &mut Value) {
        mark::set(pod, self.revision, self.now);
    }

    /// Gives the pod the revision's name, labels and annotations.
    pub(crate) fn finish(&self, pod: &mut Value) {
        for change in &self.change.texts {
            mark::set_text(pod, change.place, &change.key, change.value.as_deref());
        }
        mark::remove(pod);
        mark::set_text(pod, "labels", REVISION_LABEL, Some(self.revision));
    }

    /// Returns the patch of a pod's spec that gives its containers their resources; `None` if they
    /// have them.
    fn resize(&self, pod: &Value) -> Result<Option<Value>, Reason> {
        let present: BTreeMap<ContainerName, Amounts> = containers(pod)
            .map(|(name, container)| (name, Amounts::of(container)))
            .collect();
        let mut resized = present.clone();
        let mut patch = Map::new();
        for (name, desired) in &self.change.amounts {
            let (list, container) = name;
            let Some(has) = present.get(name) else {
                return Err(Reason::NoContainer(container.clone()));
            };
            let differing: Vec<_> = has.differing(desired).collect();
            if differing.is_empty() {
                continue;
            }
            if self.in_place.scope < InPlaceScope::Resources {
                return Err(Reason::ResourcesNotChosen(container.clone()));
            }
            let resources = desired.resources(&differing);
            let patched = patch.entry(*list).or_insert_with(|| json!([]));
            if let Some(patched) = patched.as_array_mut() {
                patched.push(json!({"name": container, "resources": resources}));
            }
            resized.insert(name.clone(), has.clone().changed_to(desired));
        }
        if patch.is_empty() {
            return Ok(None);
        }
        if pod
            .pointer("/spec/resources")
            .is_some_and(|it| !it.is_null())
        {
            return Err(Reason::PodResources);
        }
        let (from, to) = (
            QosClass::of(present.values()),
            QosClass::of(resized.values()),
        );
        if from != to {
            return Err(Reason::QosClass { from, to });
        }
        Ok(Some(patch.into()))
    }
}

/// The state of a pod's resize, as its node reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ResizeState {
    /// The containers run with the resources.
    Applied,
    /// The node can't carry it out.
    Infeasible(Said),
    /// The node has no room yet.
    Deferred(Said),
    /// The node hasn't completed it, or hasn't seen it.
    InProgress(Said),
}

impl ResizeState {
    fn of(pod: &Value, desired: &BTreeMap<ContainerName, Amounts>) -> Self {
        let generation = pod.pointer("/metadata/generation").and_then(Value::as_i64);
        // Nodes and servers of earlier versions don't tell what they have seen.
        let is_old = |place: Option<&Value>| {
            let seen = place.and_then(|it| it.get("observedGeneration")?.as_i64());
            seen.zip(generation)
                .is_some_and(|(seen, generation)| seen < generation)
        };
        let unseen = Self::InProgress(Said::default());
        if is_old(pod.get("status")) {
            return unseen;
        }
        if let Some(pending) = condition(pod, "PodResizePending") {
            let reason = pending.get("reason").and_then(Value::as_str);
            return match reason {
                _ if is_old(Some(pending)) => unseen,
                Some("Infeasible") => Self::Infeasible(said(pending)),
                _ => Self::Deferred(said(pending)),
            };
        }
        if let Some(progress) = condition(pod, "PodResizeInProgress") {
            return Self::InProgress(said(progress));
        }
        let mut desired = desired.iter();
        if desired.all(|(name, desired)| runs_with(pod, name, desired)) {
            Self::Applied
        } else {
            unseen
        }
    }
}

/// Returns a condition that is true.
fn condition<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = pod.pointer("/status/conditions")?.as_array()?;
    let is_found = |it: &&Value| {
        it.get("type").is_some_and(|it| it == kind)
            && it.get("status").is_some_and(|it| it == "True")
    };
    conditions.iter().find(is_found)
}

fn said(condition: &Value) -> Said {
    let message = condition.get("message").and_then(Value::as_str);
    Said(message.unwrap_or_default().to_owned())
}

/// Returns true if the status of a container shows these resources. An init container that isn't a
/// sidecar has ended: nothing runs with its resources.
fn runs_with(pod: &Value, name: &ContainerName, desired: &Amounts) -> bool {
    let [main, _] = CONTAINERS;
    let is_main = name.0 == main;
    let spec = containers(pod).find(|it| it.0 == *name).map(|it| it.1);
    let restarts = spec.and_then(|spec| spec.get("restartPolicy")?.as_str());
    if !is_main && restarts != Some("Always") {
        return true;
    }
    let list = if is_main {
        "/status/containerStatuses"
    } else {
        "/status/initContainerStatuses"
    };
    let statuses = pod.pointer(list).and_then(Value::as_array);
    let mut statuses = statuses.into_iter().flatten();
    let status = statuses.find(|it| it.get("name").is_some_and(|it| *it == *name.1));
    status.is_some_and(|status| Amounts::of(status).differing(desired).next().is_none())
}
