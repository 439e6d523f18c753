//! Builders of test objects: JSON as an API server would send it, decoded the same way.

#![expect(
    clippy::missing_panics_doc,
    reason = "a builder may panic on the mistakes of a test"
)]

use std::fmt::Display;
use std::marker::PhantomData;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use statefulset_client::cache::indexer::CachedObject;

use kube_apimachinery::json::RawObject;

use crate::claim::Claim;
use crate::controller_revision::ControllerRevision;
use crate::live::Live;
use crate::pod::{POD_INDEX_LABEL, POD_NAME_LABEL, Pod, REVISION_LABEL};
use crate::stateful_set::StatefulSet;

/// Namespace of all built objects.
pub const NAMESPACE: &str = "ns";
/// Deletion time of terminating objects.
pub const DELETED_AT: &str = "2026-03-01T11:00:00Z";

/// Builder of an object of the kind `K`.
#[derive(Clone, Debug)]
pub struct Builder<K> {
    json: Value,
    /// Revision data, kept verbatim.
    data: Option<String>,
    kind: PhantomData<K>,
}

impl<K: CachedObject> Builder<K> {
    /// Starts from complete JSON.
    pub fn from_json(json: Value) -> Self {
        Self {
            json,
            data: None,
            kind: PhantomData,
        }
    }

    /// Sets the field at a path such as `spec.template.metadata.labels`; creates missing parents.
    #[must_use]
    pub fn with(mut self, path: &str, value: impl Into<Value>) -> Self {
        *self.member(path) = value.into();
        self
    }

    /// Removes the field at a path.
    #[must_use]
    pub fn without(mut self, path: &str) -> Self {
        let (parent, member) = path.rsplit_once('.').unwrap_or(("", path));
        if let Value::Object(members) = self.member(parent) {
            members.remove(member);
        }
        self
    }

    fn member(&mut self, path: &str) -> &mut Value {
        let steps = path.split('.').filter(|step| !step.is_empty());
        steps.fold(&mut self.json, |value, step| match step.parse::<usize>() {
            Ok(index) => &mut value[index],
            Err(_) => &mut value[step],
        })
    }

    /// Sets a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.json["metadata"]["labels"][key] = value.into();
        self
    }

    /// Sets an annotation.
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.json["metadata"]["annotations"][key] = value.into();
        self
    }

    /// Removes a label.
    #[must_use]
    pub fn without_label(mut self, key: &str) -> Self {
        if let Value::Object(labels) = &mut self.json["metadata"]["labels"] {
            labels.remove(key);
        }
        self
    }

    /// Sets the uid; the default is the name followed by `-uid`.
    #[must_use]
    pub fn uid(self, uid: &str) -> Self {
        self.with("metadata.uid", uid)
    }

    /// Marks the object as terminating.
    #[must_use]
    pub fn terminating(self) -> Self {
        self.with("metadata.deletionTimestamp", DELETED_AT)
    }

    /// Removes all owners.
    #[must_use]
    pub fn orphan(self) -> Self {
        self.without("metadata.ownerReferences")
    }

    /// Appends an owner.
    #[must_use]
    pub fn owner(mut self, reference: Value) -> Self {
        match &mut self.json["metadata"]["ownerReferences"] {
            Value::Array(owners) => owners.push(reference),
            none => *none = json!([reference]),
        }
        self
    }

    /// The complete JSON, except for revision data.
    pub fn json(&self) -> Value {
        self.json.clone()
    }

    /// The complete text.
    pub fn text(&self) -> String {
        let json = self.json.to_string();
        let mut text = RawObject::parse(&json).expect("an object is being built");
        if let Some(data) = &self.data {
            let data = RawValue::from_string(data.clone()).expect("revision data is JSON");
            text.set("data", data);
        }
        text.to_string()
    }

    /// Builds the cached form.
    pub fn build(&self) -> K {
        K::decode(&self.text()).expect("the JSON has the built kind")
    }

    /// Builds the live form.
    pub fn live(&self) -> Live<K> {
        Live::decode(&self.text()).expect("the JSON has the built kind")
    }
}

/// A set as served by an API server, with defaults: one replica, one container, no claims.
pub fn set(name: &str) -> Builder<StatefulSet> {
    Builder::from_json(json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {
            "name": name, "namespace": NAMESPACE, "uid": format!("{name}-uid"),
            "resourceVersion": "1", "generation": 1, "labels": {"owner": "team-a"},
        },
        "spec": {
            "replicas": 1,
            "serviceName": format!("{name}-svc"),
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "containers": [{
                        "name": "main", "image": "registry.example/app:1",
                        "imagePullPolicy": "IfNotPresent", "resources": {},
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                    }],
                    "dnsPolicy": "ClusterFirst", "restartPolicy": "Always",
                    "schedulerName": "default-scheduler", "securityContext": {},
                    "terminationGracePeriodSeconds": 30,
                },
            },
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "revisionHistoryLimit": 10,
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        },
        "status": {"replicas": 0, "availableReplicas": 0},
    }))
}

impl Builder<StatefulSet> {
    /// Sets the number of replicas.
    #[must_use]
    pub fn replicas(self, replicas: i32) -> Self {
        self.with("spec.replicas", replicas)
    }

    /// Sets the first ordinal.
    #[must_use]
    pub fn start(self, ordinal: i32) -> Self {
        self.with("spec.ordinals.start", ordinal)
    }

    /// Selects parallel pod management.
    #[must_use]
    pub fn parallel(self) -> Self {
        self.with("spec.podManagementPolicy", "Parallel")
    }

    /// Selects the update strategy `OnDelete`.
    #[must_use]
    pub fn on_delete(self) -> Self {
        self.with("spec.updateStrategy", json!({"type": "OnDelete"}))
    }

    /// Selects the update strategy `Recreate`.
    #[must_use]
    pub fn recreate(self) -> Self {
        self.with("spec.updateStrategy", json!({"type": "Recreate"}))
    }

    /// Sets the partition: the lowest updated index.
    #[must_use]
    pub fn partition(self, index: i32) -> Self {
        self.with("spec.updateStrategy.rollingUpdate.partition", index)
    }

    /// Sets `maxUnavailable`: a number or a percentage.
    #[must_use]
    pub fn max_unavailable(self, desired: impl Into<Value>) -> Self {
        self.with("spec.updateStrategy.rollingUpdate.maxUnavailable", desired)
    }

    /// Sets `minReadySeconds`.
    #[must_use]
    pub fn min_ready_seconds(self, seconds: i32) -> Self {
        self.with("spec.minReadySeconds", seconds)
    }

    /// Sets the claim retention policy, `whenScaled` first.
    #[must_use]
    pub fn retention(self, when_scaled: &str, when_deleted: &str) -> Self {
        let path = "spec.persistentVolumeClaimRetentionPolicy";
        self.with(
            path,
            json!({"whenScaled": when_scaled, "whenDeleted": when_deleted}),
        )
    }

    /// Appends a claim template.
    #[must_use]
    pub fn claim_template(mut self, name: &str) -> Self {
        let template = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
                "resources": {"requests": {"storage": "1Gi"}},
            },
            "status": {"phase": "Pending"},
        });
        match &mut self.json["spec"]["volumeClaimTemplates"] {
            Value::Array(templates) => templates.push(template),
            none => *none = json!([template]),
        }
        self
    }

    /// Sets the image of the only container.
    #[must_use]
    pub fn image(self, image: &str) -> Self {
        self.with("spec.template.spec.containers.0.image", image)
    }

    /// Sets the generation.
    #[must_use]
    pub fn generation(self, generation: i64) -> Self {
        self.with("metadata.generation", generation)
    }
}

/// A running, ready pod of a set, with correct identity, volumes and owner.
pub fn pod(set: &StatefulSet, ordinal: impl Display) -> Builder<Pod> {
    let name = format!("{}-{ordinal}", set.name());
    let volumes: Vec<Value> = set
        .spec
        .claim_templates
        .iter()
        .map(|template| {
            let claim = format!("{}-{name}", template.name);
            json!({"name": template.name, "persistentVolumeClaim": {"claimName": claim}})
        })
        .collect();
    let template = set
        .spec
        .template
        .to_value()
        .expect("a template of a test is JSON");
    let mut labels = template["metadata"]["labels"].clone();
    labels[POD_NAME_LABEL] = name.as_str().into();
    labels[POD_INDEX_LABEL] = ordinal.to_string().into();
    Builder::from_json(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": set.namespace(), "uid": format!("{name}-uid"),
            "resourceVersion": "5", "labels": labels,
            "ownerReferences": [set.controller_reference()],
        },
        "spec": {"containers": template["spec"]["containers"], "volumes": volumes},
    }))
    .ready_since("2026-03-01T10:00:00Z")
}

impl Builder<Pod> {
    /// Sets the phase, but not the conditions.
    #[must_use]
    pub fn phase(self, phase: &str) -> Self {
        self.with("status.phase", phase)
    }

    /// Makes the pod running, and ready since this time.
    #[must_use]
    pub fn ready_since(self, moment: &str) -> Self {
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": moment});
        self.phase("Running")
            .with("status.conditions", json!([ready]))
    }

    /// Makes the pod not ready; keeps the phase.
    #[must_use]
    pub fn unready(self) -> Self {
        self.with("status.conditions.0.status", "False")
    }

    /// Makes the pod pending, without conditions.
    #[must_use]
    pub fn pending(self) -> Self {
        self.with("status", json!({"phase": "Pending"}))
    }

    /// Sets the revision label.
    #[must_use]
    pub fn revision(self, name: &str) -> Self {
        self.label(REVISION_LABEL, name)
    }
}

/// A claim of the set's pod with this ordinal, from a claim template, without owners.
pub fn claim(set: &StatefulSet, template: &str, ordinal: impl Display) -> Builder<Claim> {
    let name = format!("{template}-{}-{ordinal}", set.name());
    Builder::from_json(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name, "namespace": set.namespace(), "uid": format!("{name}-uid"),
            "resourceVersion": "3", "labels": {"app": set.name()},
        },
        "spec": {"volumeName": format!("pv-{name}")},
        "status": {"phase": "Bound"},
    }))
}

/// A revision that the set controls, with these bytes as data.
pub fn revision(
    set: &StatefulSet,
    name: &str,
    number: i64,
    data: &str,
) -> Builder<ControllerRevision> {
    let mut revision = Builder::from_json(json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": {
            "name": name, "namespace": set.namespace(), "uid": format!("{name}-uid"),
            "resourceVersion": "2", "creationTimestamp": "2026-03-01T09:00:00Z",
            "labels": {"app": set.name()},
            "ownerReferences": [set.controller_reference()],
        },
        "revision": number,
    }));
    revision.data = Some(data.to_owned());
    revision
}

/// An owner reference to a set, a pod or another object; `controls: None` omits the `controller`
/// field.
pub fn owner_reference(
    (api_version, kind): (&str, &str),
    name: &str,
    uid: &str,
    controls: Option<bool>,
) -> Value {
    let mut reference = json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid});
    if let Some(controls) = controls {
        reference["controller"] = controls.into();
        reference["blockOwnerDeletion"] = true.into();
    }
    reference
}
