//! The set's spec, and its relation to pod names and pods.

use jiff::{SignedDuration, Timestamp};
use kube_apimachinery::int_or_string::IntOrString;
use serde_json::{Map, Value};

use super::failure::Failure;
use super::object::{controller_reference, is_deleting, label, list, map, name, number, text, uid};

/// Label with a pod's name.
pub(super) const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// Label with a pod's ordinal.
pub(super) const POD_INDEX: &str = "apps.kubernetes.io/pod-index";
/// Label with the name of a pod's revision.
pub(super) const REVISION: &str = "controller-revision-hash";

/// The cached set.
pub(super) struct Set {
    pub(super) value: Value,
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) uid: String,
    pub(super) replicas: i64,
    pub(super) start: i64,
    pub(super) min_ready: i64,
    pub(super) is_burst: bool,
    pub(super) is_deleting: bool,
    pub(super) when_deleted: String,
    pub(super) when_scaled: String,
    /// Claim templates in their order; of repeated names the last one.
    pub(super) claim_templates: Vec<Value>,
}

impl Set {
    pub(super) fn of(value: Value) -> Self {
        let policy = |field: &str| {
            let policy = &value["spec"]["persistentVolumeClaimRetentionPolicy"];
            if policy.is_null() {
                String::from("Retain")
            } else {
                text(policy, field).to_owned()
            }
        };
        let templates = list(&value, "/spec/volumeClaimTemplates");
        let is_last = |(index, template): &(usize, &Value)| {
            templates[index + 1..]
                .iter()
                .all(|later| name(later) != name(template))
        };
        let last = templates.iter().enumerate().filter(is_last);
        Self {
            name: name(&value).to_owned(),
            namespace: text(&value, "/metadata/namespace").to_owned(),
            uid: uid(&value).to_owned(),
            replicas: value["spec"]["replicas"].as_i64().unwrap_or(1),
            start: number(&value, "/spec/ordinals/start"),
            min_ready: number(&value, "/spec/minReadySeconds"),
            is_burst: value["spec"]["podManagementPolicy"] == "Parallel",
            is_deleting: is_deleting(&value),
            when_deleted: policy("/whenDeleted"),
            when_scaled: policy("/whenScaled"),
            claim_templates: last.map(|(_, template)| template.clone()).collect(),
            value,
        }
    }

    pub(super) fn pod_name(&self, ordinal: i64) -> String {
        format!("{}-{ordinal}", self.name)
    }

    pub(super) fn claim_name(&self, template: &Value, ordinal: i64) -> String {
        format!("{}-{}-{ordinal}", name(template), self.name)
    }

    pub(super) fn reference(&self) -> Value {
        controller_reference("apps/v1", "StatefulSet", &self.name, &self.uid)
    }

    pub(super) fn match_labels(&self) -> Map<String, Value> {
        map(&self.value, "/spec/selector/matchLabels")
    }

    /// Maximum number of unavailable replicas during a rolling update.
    pub(super) fn max_unavailable(&self) -> Result<usize, Failure> {
        let Some(rolling) = self.rolling_update() else {
            return Ok(1);
        };
        let given = rolling
            .get("maxUnavailable")
            .filter(|given| !given.is_null());
        let given: IntOrString = given
            .map_or(Ok(IntOrString::Int(1)), |given| {
                serde_json::from_value(given.clone())
            })
            .map_err(|error| Failure::new(error.to_string()))?;
        let replicas = i32::try_from(self.replicas).unwrap_or(i32::MAX);
        let scaled = given.scaled_value(replicas, false);
        let scaled = scaled.map_err(|error| Failure::new(error.to_string()))?;
        Ok(usize::try_from(scaled).unwrap_or(0).max(1))
    }

    /// Parameters of the rolling update, if any.
    pub(super) fn rolling_update(&self) -> Option<&Value> {
        self.value
            .pointer("/spec/updateStrategy/rollingUpdate")
            .filter(|given| !given.is_null())
    }

    pub(super) fn strategy(&self) -> &str {
        text(&self.value, "/spec/updateStrategy/type")
    }

    pub(super) fn is_member(&self, pod: &Value) -> bool {
        parse(name(pod)).0 == self.name
    }

    /// Returns true if the pod's name is like the set's, but not canonical.
    pub(super) fn is_non_canonical(&self, pod: &Value) -> bool {
        self.is_member(pod) && name(pod) != self.pod_name(ordinal(pod))
    }

    pub(super) fn is_in_range(&self, pod: &Value) -> bool {
        (self.start..self.start + self.replicas).contains(&ordinal(pod))
    }

    pub(super) fn identity_matches(&self, pod: &Value) -> bool {
        ordinal(pod) >= 0
            && name(pod) == self.pod_name(ordinal(pod))
            && text(pod, "/metadata/namespace") == self.namespace
            && label(pod, POD_NAME) == name(pod)
    }

    pub(super) fn storage_matches(&self, pod: &Value) -> bool {
        ordinal(pod) >= 0
            && self.claim_templates.iter().all(|template| {
                // Of repeated names the last volume counts.
                let volumes = list(pod, "/spec/volumes").iter();
                let volume = volumes
                    .rev()
                    .find(|volume| volume["name"] == name(template));
                volume.is_some_and(|volume| {
                    text(volume, "/persistentVolumeClaim/claimName")
                        == self.claim_name(template, ordinal(pod))
                })
            })
    }

    pub(super) fn is_available(&self, pod: &Value, now: Timestamp) -> bool {
        is_ready(pod)
            && (self.min_ready == 0 || self.available_at(pod).is_some_and(|moment| moment <= now))
    }

    /// Time at which a ready pod becomes available, if known.
    pub(super) fn available_at(&self, pod: &Value) -> Option<Timestamp> {
        let since = ready_condition(pod)?["lastTransitionTime"].as_str()?;
        let since: Timestamp = since.parse().ok()?;
        Some(since + SignedDuration::from_secs(self.min_ready))
    }

    pub(super) fn is_unavailable(&self, pod: &Value, now: Timestamp) -> bool {
        !self.is_available(pod, now) || is_deleting(pod)
    }
}

/// Prefix and ordinal of a pod name; the ordinal is -1 if missing or out of range.
fn parse(name: &str) -> (&str, i64) {
    match name.rsplit_once('-') {
        Some((parent, digits))
            if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            (parent, digits.parse::<i32>().map_or(-1, i64::from))
        }
        _ => ("", -1),
    }
}

pub(super) fn ordinal(pod: &Value) -> i64 {
    parse(name(pod)).1
}

pub(super) fn phase(pod: &Value) -> &str {
    text(pod, "/status/phase")
}

/// Returns true if the pod exists, as opposed to a planned one.
pub(super) fn is_created(pod: &Value) -> bool {
    !phase(pod).is_empty()
}

fn ready_condition(pod: &Value) -> Option<&Value> {
    list(pod, "/status/conditions")
        .iter()
        .find(|condition| condition["type"] == "Ready")
}

pub(super) fn is_ready(pod: &Value) -> bool {
    ready_condition(pod).is_some_and(|condition| condition["status"] == "True")
}

pub(super) fn is_running_and_ready(pod: &Value) -> bool {
    phase(pod) == "Running" && is_ready(pod)
}
