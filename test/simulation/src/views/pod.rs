//! Pods.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::{Owner, text};

/// A pod.
#[derive(Clone, Debug)]
pub struct Pod {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// The controlling owner.
    pub controller: Option<Owner>,
    /// Value of the label that selectors match.
    pub app: String,
    /// Value of the label with the pod's name.
    pub name_label: String,
    /// Value of the label with the pod's index.
    pub index_label: String,
    /// Value of the label with the revision.
    pub revision: String,
    /// Phase.
    pub phase: String,
    /// The time since which the condition `Ready` is true, if it is.
    pub ready: Option<Option<Timestamp>>,
    /// True if it is being deleted.
    pub terminating: bool,
    /// Host name.
    pub hostname: String,
    /// Image of the first container.
    pub image: String,
    /// Cores that its first container requests.
    pub cpu: String,
    /// Those with which it runs.
    pub actual_cpu: String,
    /// Reason of the condition about its resize; none if no resize is pending or in progress.
    pub resize: Option<String>,
    /// Names of its claims.
    pub claims: Vec<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Reasons for which its containers wait.
    pub waits: Vec<String>,
    /// The time since which it is as ready, or unready, as it is: that of the condition `Ready`, else
    /// of its creation.
    pub since: Option<Timestamp>,
    /// The time of its creation.
    pub created: Option<Timestamp>,
}

impl Pod {
    /// Reads a pod.
    pub fn read(value: &Value) -> Self {
        let label = |key: &str| {
            let label = value.pointer("/metadata/labels").and_then(|it| it.get(key));
            label.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let list = |pointer| {
            let list = value.pointer(pointer).and_then(Value::as_array);
            list.into_iter().flatten()
        };
        let ready = list("/status/conditions")
            .find(|it| text(it, "/type") == "Ready" && text(it, "/status") == "True");
        let condition = list("/status/conditions").find(|it| text(it, "/type") == "Ready");
        let since = condition.map(|it| text(it, "/lastTransitionTime"));
        let created = text(value, "/metadata/creationTimestamp").parse().ok();
        let containers = ["/status/initContainerStatuses", "/status/containerStatuses"];
        let waits = containers.into_iter().flat_map(list);
        let waits = waits.map(|it| text(it, "/state/waiting/reason"));
        Self {
            labels: super::map(value, "/metadata/labels"),
            annotations: super::map(value, "/metadata/annotations"),
            waits: waits.filter(|reason| !reason.is_empty()).collect(),
            since: since.and_then(|it| it.parse().ok()).or(created),
            created,
            name: text(value, "/metadata/name"),
            uid: text(value, "/metadata/uid"),
            controller: super::controller(value),
            app: label("app"),
            name_label: label("statefulset.kubernetes.io/pod-name"),
            index_label: label("apps.kubernetes.io/pod-index"),
            revision: label("controller-revision-hash"),
            phase: text(value, "/status/phase"),
            ready: ready.map(|it| text(it, "/lastTransitionTime").parse().ok()),
            terminating: super::is_terminating(value),
            hostname: text(value, "/spec/hostname"),
            image: text(value, "/spec/containers/0/image"),
            cpu: text(value, "/spec/containers/0/resources/requests/cpu"),
            actual_cpu: text(value, "/status/containerStatuses/0/resources/requests/cpu"),
            resize: list("/status/conditions")
                .find(|it| {
                    text(it, "/type").starts_with("PodResize") && text(it, "/status") == "True"
                })
                .map(|it| text(it, "/reason")),
            claims: list("/spec/volumes")
                .map(|it| text(it, "/persistentVolumeClaim/claimName"))
                .filter(|name| !name.is_empty())
                .collect(),
        }
    }

    /// Returns the ordinal of the pod in the set `set`, if its name is the canonical one.
    pub fn ordinal(&self, set: &str) -> Option<u32> {
        let digits = self.name.strip_prefix(set)?.strip_prefix('-')?;
        let ordinal: u32 = digits.parse().ok()?;
        (ordinal.to_string() == digits && ordinal <= i32::MAX.unsigned_abs()).then_some(ordinal)
    }

    /// Reports whether the API server has accepted it: from then on it has a phase.
    pub fn is_created(&self) -> bool {
        !self.phase.is_empty()
    }

    /// Reports whether this set controls it.
    pub fn is_of(&self, set: &str) -> bool {
        let owner = self.controller.as_ref();
        owner.is_some_and(|owner| owner.uid == set)
    }

    /// Reports whether it runs and is ready.
    pub fn is_ready(&self) -> bool {
        self.phase == "Running" && self.ready.is_some()
    }

    /// Reports whether it ended.
    pub fn has_ended(&self) -> bool {
        self.phase == "Failed" || self.phase == "Succeeded"
    }

    /// Reports whether it has been ready for this number of seconds.
    pub fn is_available(&self, seconds: u32, now: Timestamp) -> bool {
        let Some(since) = self.ready else {
            return false;
        };
        let time = Duration::from_secs(seconds.into());
        seconds == 0
            || since.is_some_and(|since| since.checked_add(time).is_ok_and(|end| end <= now))
    }

    /// Reports whether it is available and stays.
    pub fn is_healthy(&self, seconds: u32, now: Timestamp) -> bool {
        self.is_ready() && self.is_available(seconds, now) && !self.terminating
    }
}
