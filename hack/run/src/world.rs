//! The view's cluster state: the shown fields of sets, pods, claims and warnings.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DynamicObject, ResourceExt as _};
use serde_json::Value;

/// Label of a pod with the name of its revision.
const REVISION_LABEL: &str = "controller-revision-hash";

/// Namespace and name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Namespace.
    pub(crate) namespace: String,
    /// Name.
    pub(crate) name: String,
}

impl Key {
    /// Creates a key.
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The key of an object.
    pub(crate) fn of(metadata: &ObjectMeta) -> Self {
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A StatefulSet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Set {
    /// Uid.
    pub(crate) uid: String,
    /// True during deletion.
    pub(crate) deleting: bool,
    /// Generation of its spec.
    pub(crate) generation: i64,
    /// Observed generation.
    pub(crate) observed_generation: i64,
    /// First ordinal.
    pub(crate) start: i32,
    /// Desired replicas.
    pub(crate) replicas: i32,
    /// Names of the claim templates.
    pub(crate) claim_templates: Vec<String>,
    /// Status counter: pods.
    pub(crate) current: i32,
    /// Status counter: ready pods.
    pub(crate) ready: i32,
    /// Status counter: available pods.
    pub(crate) available: i32,
    /// Status counter: pods of the update revision.
    pub(crate) updated: i32,
    /// Current revision.
    pub(crate) current_revision: String,
    /// Update revision.
    pub(crate) update_revision: String,
}

impl Set {
    /// Desired ordinals.
    pub(crate) fn ordinals(&self) -> std::ops::Range<i64> {
        let start = i64::from(self.start);
        start..start + i64::from(self.replicas)
    }
}

/// Reads a set.
pub(crate) fn set(set: &DynamicObject) -> (Key, Set) {
    let (spec, status) = (&set.data["spec"], &set.data["status"]);
    let templates = items(&spec["volumeClaimTemplates"]);
    let read = Set {
        uid: set.uid().unwrap_or_default(),
        deleting: set.metadata.deletion_timestamp.is_some(),
        generation: set.metadata.generation.unwrap_or_default(),
        observed_generation: number(&status["observedGeneration"]).unwrap_or_default(),
        start: number(&spec["ordinals"]["start"]).unwrap_or_default(),
        replicas: number(&spec["replicas"]).unwrap_or(1),
        claim_templates: templates
            .iter()
            .filter_map(|template| template["metadata"]["name"].as_str().map(str::to_owned))
            .collect(),
        current: number(&status["replicas"]).unwrap_or_default(),
        ready: number(&status["readyReplicas"]).unwrap_or_default(),
        available: number(&status["availableReplicas"]).unwrap_or_default(),
        updated: number(&status["updatedReplicas"]).unwrap_or_default(),
        current_revision: text(&status["currentRevision"]),
        update_revision: text(&status["updateRevision"]),
    };
    (Key::of(&set.metadata), read)
}

/// A pod controlled by a set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Member {
    /// Uid of its controller, or empty.
    pub(crate) set_uid: String,
    /// Ordinal at the end of its name.
    pub(crate) ordinal: Option<i64>,
    /// True during deletion.
    pub(crate) deleting: bool,
    /// Name of its revision.
    pub(crate) revision: String,
    /// Phase.
    pub(crate) phase: String,
    /// True for a Ready condition that is True.
    pub(crate) ready: bool,
    /// Reason why it is not ready, from a waiting container or a condition.
    pub(crate) not_ready_reason: String,
}

/// Reads a pod.
pub(crate) fn pod(pod: &DynamicObject) -> (Key, Member) {
    let status = &pod.data["status"];
    let conditions = items(&status["conditions"]);
    let ready = conditions
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    let waiting = items(&status["containerStatuses"])
        .iter()
        .find_map(|found| {
            let waiting = found["state"]["waiting"].as_object()?;
            let reason = waiting.get("reason").map(text).unwrap_or_default();
            Some(format!("container {}: {reason}", text(&found["name"])))
        });
    let unmet = || {
        let unmet = conditions
            .iter()
            .find(|condition| condition["status"] != "True")?;
        let said = ["message", "reason"].map(|member| text(&unmet[member]));
        said.into_iter().find(|text| !text.is_empty())
    };
    let controller = pod
        .owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true));
    let read = Member {
        set_uid: controller
            .map(|owner| owner.uid.clone())
            .unwrap_or_default(),
        ordinal: pod
            .name_any()
            .rsplit_once('-')
            .and_then(|(_, ordinal)| ordinal.parse().ok()),
        deleting: pod.metadata.deletion_timestamp.is_some(),
        revision: pod
            .labels()
            .get(REVISION_LABEL)
            .cloned()
            .unwrap_or_default(),
        phase: text(&status["phase"]),
        ready,
        not_ready_reason: waiting.or_else(unmet).unwrap_or_default(),
    };
    (Key::of(&pod.metadata), read)
}

/// Reads a claim's phase.
pub(crate) fn claim(claim: &DynamicObject) -> (Key, String) {
    let phase = claim.data["status"]["phase"].as_str().unwrap_or("Pending");
    (Key::of(&claim.metadata), phase.to_owned())
}

/// Object and text of a warning event.
pub(crate) fn warning(event: &DynamicObject) -> Option<(Key, String)> {
    let event = &event.data;
    if event["type"] != "Warning" {
        return None;
    }
    let about = &event["involvedObject"];
    let key = Key {
        namespace: text(&about["namespace"]),
        name: text(&about["name"]),
    };
    let warning = format!("{}: {}", text(&event["reason"]), text(&event["message"]));
    (!key.name.is_empty()).then_some((key, warning))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number<T: TryFrom<i64>>(value: &Value) -> Option<T> {
    value.as_i64()?.try_into().ok()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A change reported by a watch.
#[derive(Debug)]
pub(crate) enum Change {
    /// Sets.
    Sets(ObjectChange<Set>),
    /// Pods.
    Pods(ObjectChange<Member>),
    /// Phases of claims.
    Claims(ObjectChange<String>),
    /// Warnings, by object.
    Warnings(ObjectChange<String>),
}

/// A change of objects of one kind.
#[derive(Debug)]
pub(crate) enum ObjectChange<T> {
    /// The complete list.
    All(BTreeMap<Key, T>),
    /// An added or changed object.
    One(Key, T),
    /// A removed object.
    Gone(Key),
}

impl<T> ObjectChange<T> {
    fn apply(self, objects: &mut BTreeMap<Key, T>) {
        match self {
            Self::All(all) => *objects = all,
            Self::One(key, object) => drop(objects.insert(key, object)),
            Self::Gone(key) => drop(objects.remove(&key)),
        }
    }
}

/// The complete state.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// Sets.
    pub(crate) sets: BTreeMap<Key, Set>,
    /// Pods.
    pub(crate) pods: BTreeMap<Key, Member>,
    /// Phases of claims.
    pub(crate) claims: BTreeMap<Key, String>,
    /// Last warning about an object.
    pub(crate) warnings: BTreeMap<Key, String>,
}

impl Observed {
    /// Applies a change.
    pub(crate) fn apply(&mut self, change: Change) {
        match change {
            Change::Sets(seen) => seen.apply(&mut self.sets),
            Change::Pods(seen) => seen.apply(&mut self.pods),
            Change::Claims(seen) => seen.apply(&mut self.claims),
            Change::Warnings(seen) => seen.apply(&mut self.warnings),
        }
    }

    /// Pods controlled by a set, with their names.
    pub(crate) fn members<'a>(
        &'a self,
        key: &'a Key,
        set: &'a Set,
    ) -> impl Iterator<Item = (&'a Key, &'a Member)> {
        self.pods
            .iter()
            .filter(|(pod, member)| pod.namespace == key.namespace && member.set_uid == set.uid)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn member(object: Value) -> Member {
        let object = serde_json::from_value(object).expect("it is an object");
        pod(&object).1
    }

    #[test]
    fn unready_pods_have_a_reason() {
        let waiting = member(json!({"metadata": {"name": "web-12"}, "status": {
            "conditions": [{"type": "Ready", "status": "False", "message": "not yet"}],
            "containerStatuses": [{"name": "c", "image": "", "imageID": "", "ready": false,
                "restartCount": 0, "state": {"waiting": {"reason": "ImagePullBackOff"}}}],
        }}));
        assert_eq!(waiting.not_ready_reason, "container c: ImagePullBackOff");
        assert_eq!(waiting.ordinal, Some(12));
        let unscheduled = member(
            json!({"metadata": {"name": "web-0"}, "status": {"conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                 "message": "0/1 nodes are available"},
            ]}}),
        );
        assert_eq!(unscheduled.not_ready_reason, "0/1 nodes are available");
        assert!(!unscheduled.ready);
    }

    #[test]
    fn only_warnings_are_kept() {
        let event = |type_: &str| {
            let event = json!({"metadata": {}, "type": type_, "reason": "FailedCreate",
                "message": "m", "involvedObject": {"namespace": "n", "name": "web"}});
            warning(&serde_json::from_value(event).expect("it is an object"))
        };
        assert_eq!(event("Normal"), None);
        assert_eq!(
            event("Warning"),
            Some((Key::new("n", "web"), "FailedCreate: m".to_owned()))
        );
    }

    #[test]
    fn relist_removes_missing_objects() {
        let mut world = Observed::default();
        let key = Key::new("n", "c");
        world.apply(Change::Claims(ObjectChange::One(
            key.clone(),
            "Bound".to_owned(),
        )));
        assert_eq!(world.claims.len(), 1);
        world.apply(Change::Claims(ObjectChange::All(BTreeMap::new())));
        assert!(world.claims.is_empty());
        world.apply(Change::Claims(ObjectChange::Gone(key)));
    }
}
