//! A deployment and its replica sets, as one sync sees them.

use std::sync::Arc;

use jiff::Timestamp;
use kube_apimachinery::hash::{fnv1a_64, safe_encode_string};
use kube_test_control_plane_api::members::{number_at, text_at};
use kube_test_control_plane_api::object::{Key, Object};
use serde_json::{Value, json};

/// The label with the hash of a replica set's template.
pub(super) const HASH: &str = "pod-template-hash";
/// The annotation with the revision of a deployment or a replica set.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// The annotation of a replica set with its deployment's replicas.
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// The annotation of a replica set with its deployment's maximum of pods.
pub(super) const MAX: &str = "deployment.kubernetes.io/max-replicas";

/// A replica set of a deployment.
#[derive(Clone, Debug)]
pub(super) struct ReplicaSet {
    pub(super) key: Key,
    pub(super) uid: Box<str>,
    pub(super) value: Value,
    /// The desired number of pods.
    pub(super) replicas: i64,
    pub(super) available: i64,
}

impl ReplicaSet {
    fn new((object, value): (Arc<Object>, Value)) -> Self {
        let (key, uid) = identity(&object);
        Self {
            key,
            uid,
            replicas: number_at(&value, "/spec/replicas"),
            available: number_at(&value, "/status/availableReplicas"),
            value,
        }
    }

    pub(super) fn annotation(&self, name: &str) -> Option<&str> {
        self.value
            .pointer("/metadata/annotations")?
            .get(name)?
            .as_str()
    }

    /// Returns the number in an annotation.
    pub(super) fn number(&self, annotation: &str) -> Option<i64> {
        self.annotation(annotation)?.parse().ok()
    }

    fn age(&self) -> (&str, &str) {
        let created = text_at(&self.value, "/metadata/creationTimestamp");
        (created, text_at(&self.value, "/metadata/name"))
    }
}

/// A deployment and its replica sets.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) key: Key,
    pub(super) uid: Box<str>,
    pub(super) value: Value,
    pub(super) now: Timestamp,
    pub(super) is_deleting: bool,
    pub(super) is_paused: bool,
    pub(super) strategy: String,
    pub(super) replicas: i64,
    /// Maximum number of pods above `replicas` during a rollout.
    pub(super) max_surge: i64,
    /// Maximum number of pods that may be unavailable during a rollout.
    pub(super) max_unavailable: i64,
    /// The replica set of the current template.
    pub(super) new: Option<ReplicaSet>,
    /// The others, oldest first.
    pub(super) old: Vec<ReplicaSet>,
}

impl View {
    pub(super) fn new(
        deployment: &Object,
        sets: Vec<(Arc<Object>, Value)>,
        now: Timestamp,
    ) -> Self {
        let (key, uid) = identity(deployment);
        let value = deployment.value();
        let mut sets: Vec<ReplicaSet> = sets.into_iter().map(ReplicaSet::new).collect();
        sets.sort_by(|one, other| one.age().cmp(&other.age()));
        let template = value.pointer("/spec/template");
        let same = |set: &ReplicaSet| {
            let found = set.value.pointer("/spec/template");
            found.map(without_hash) == template.map(without_hash)
        };
        // Upstream takes the oldest of several.
        let new = sets.iter().position(same).map(|i| sets.remove(i));
        let replicas = number_at(&value, "/spec/replicas");
        let strategy = text_at(&value, "/spec/strategy/type").to_owned();
        let (max_surge, max_unavailable) = match strategy.as_str() {
            "RollingUpdate" => fenceposts(&value, replicas),
            _ => (0, 0),
        };
        Self {
            key,
            uid,
            now,
            is_deleting: deployment.deleting,
            is_paused: value.pointer("/spec/paused") == Some(&json!(true)),
            strategy,
            replicas,
            max_surge,
            max_unavailable,
            new,
            old: sets,
            value,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.key.name
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &ReplicaSet> {
        self.old.iter().chain(&self.new)
    }

    /// Returns the desired pods of all replica sets.
    pub(super) fn all_replicas(&self) -> i64 {
        self.all().map(|set| set.replicas).sum()
    }

    /// Returns the desired pods of the old replica sets.
    pub(super) fn old_replicas(&self) -> i64 {
        self.old.iter().map(|set| set.replicas).sum()
    }

    /// Returns the sum of a counter in the statuses of all replica sets.
    pub(super) fn sum(&self, member: &str) -> i64 {
        let pointer = format!("/status/{member}");
        self.all().map(|set| number_at(&set.value, &pointer)).sum()
    }

    /// Reports whether the deployment's replicas have changed since its replica sets were scaled.
    ///
    /// Upstream: `isScalingEvent`
    pub(super) fn is_scaling(&self) -> bool {
        let mut active = self.all().filter(|set| set.replicas > 0);
        active.any(|set| set.number(DESIRED).is_some_and(|it| it != self.replicas))
    }

    /// Reports whether all pods are of the current template and available.
    ///
    /// Upstream: `DeploymentComplete`
    pub(super) fn is_complete(&self) -> bool {
        let updated = self
            .new
            .as_ref()
            .map_or(0, |set| number_at(&set.value, "/status/replicas"));
        updated == self.replicas
            && self.sum("replicas") == self.replicas
            && self.sum("availableReplicas") == self.replicas
    }

    /// Returns the hash of the current template. It differs from upstream's hash, which covers
    /// Go's printed form.
    pub(super) fn hash(&self) -> String {
        let template = self.value.pointer("/spec/template").unwrap_or(&Value::Null);
        let collisions = number_at(&self.value, "/status/collisionCount");
        let hash = fnv1a_64(&format!("{template}{collisions}")) & u64::from(u32::MAX);
        safe_encode_string(&hash.to_string())
    }
}

/// Returns a template without the label that distinguishes replica sets.
fn without_hash(template: &Value) -> Value {
    let mut template = template.clone();
    let metadata = template.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        let labels = metadata.get_mut("labels").and_then(Value::as_object_mut);
        let is_empty = labels.is_none_or(|labels| {
            labels.remove(HASH);
            labels.is_empty()
        });
        if is_empty {
            metadata.remove("labels");
        }
    }
    template
}

/// Resolves `maxSurge` and `maxUnavailable` to numbers of pods.
///
/// Upstream: `ResolveFenceposts`
fn fenceposts(deployment: &Value, replicas: i64) -> (i64, i64) {
    let of = |member: &str, round_up: i64| {
        let value = deployment.pointer(&format!("/spec/strategy/rollingUpdate/{member}"));
        let percent = value.and_then(|it| it.as_str()?.strip_suffix('%')?.parse::<i64>().ok());
        match percent {
            Some(percent) => (percent.saturating_mul(replicas)).saturating_add(round_up) / 100,
            None => value.and_then(Value::as_i64).unwrap_or_default(),
        }
    };
    match (of("maxSurge", 99), of("maxUnavailable", 0)) {
        (0, 0) => (0, replicas.min(1)),
        (surge, unavailable) => (surge, unavailable.min(replicas)),
    }
}

/// Returns the key and uid of an object, as writes need them.
pub(super) fn identity(object: &Object) -> (Key, Box<str>) {
    (object.key.clone(), object.uid.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surge_rounds_up_and_unavailable_rounds_down() {
        let of = |rolling: Value, replicas| {
            let spec = json!({"spec": {"strategy": {"rollingUpdate": rolling}}});
            fenceposts(&spec, replicas)
        };
        let quarter = json!({"maxSurge": "25%", "maxUnavailable": "25%"});
        assert_eq!(of(quarter.clone(), 3), (1, 0));
        assert_eq!(of(quarter, 10), (3, 2));
        assert_eq!(
            of(json!({"maxSurge": 0, "maxUnavailable": "10%"}), 5),
            (0, 1)
        );
        assert_eq!(of(json!({"maxSurge": 0, "maxUnavailable": 9}), 5), (0, 5));
    }

    #[test]
    fn templates_compare_without_their_hash() {
        let one = json!({"metadata": {"labels": {"a": "b"}}});
        let other = json!({"metadata": {"labels": {"a": "b", HASH: "x"}}});
        assert_eq!(without_hash(&one), without_hash(&other));
        let bare = json!({"metadata": {"labels": {HASH: "x"}}});
        assert_eq!(without_hash(&bare), json!({"metadata": {}}));
    }
}
