//! Pods as cached, with the fields that the controller reads.

use std::sync::Arc;

use jiff::Timestamp;
use kube_apimachinery::labels::Labels;
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::owner_reference::OwnerReference;
use kube_apimachinery::pod::{PodPhase, Readiness};

mod cached;
mod json;
mod name;
mod protobuf;
mod unready;

pub use name::{PodName, split_name};
pub use unready::{ContainerTrouble, Unready};

/// Label with a pod's own name, set by StatefulSets.
pub const POD_NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
/// Label with a pod's ordinal in decimal.
pub const POD_INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";
/// Label with the name of a pod's ControllerRevision.
pub const REVISION_LABEL: &str = "controller-revision-hash";

/// A stored pod, reduced to the fields that decisions need.
///
/// It is never written back: updates start from the live object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    /// Name.
    pub name: PodName,
    /// Namespace.
    pub namespace: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Resource version of this copy.
    pub resource_version: Box<str>,
    /// All labels.
    pub labels: Labels,
    /// The controlling owner reference, if any.
    pub controller: Option<Arc<OwnerReference>>,
    /// End of graceful deletion, for a terminating pod.
    pub deletion_timestamp: Option<Timestamp>,
    /// Volumes backed by a claim, in the pod's order.
    pub claim_volumes: Box<[ClaimVolume]>,
    /// Phase.
    pub phase: PodPhase,
    /// State of the first Ready condition.
    pub readiness: Readiness,
    /// Details of a pod that isn't ready; boxed, because few pods have them.
    pub unready: Option<Box<Unready>>,
}

/// A pod volume backed by a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimVolume {
    /// Name of the volume in the pod.
    pub name: Box<str>,
    /// Name of the claim.
    pub claim_name: Box<str>,
}

impl Pod {
    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.name)
    }

    /// Revision name in the pod's labels; empty without one.
    ///
    /// Upstream: `getPodRevision`, as a method of the pod.
    pub fn revision(&self) -> &str {
        self.labels.get(REVISION_LABEL).unwrap_or("")
    }

    /// Returns true if an API server has stored the pod.
    ///
    /// Upstream: `isCreated`.
    pub fn is_created(&self) -> bool {
        self.phase != PodPhase::None
    }

    /// Returns true if the pod is being deleted.
    ///
    /// Upstream: `isTerminating`.
    pub fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Returns true if all containers have ended, in success or failure.
    ///
    /// Upstream: `isFailed`, `isSucceeded`, as one predicate.
    pub fn is_terminal(&self) -> bool {
        matches!(self.phase, PodPhase::Failed | PodPhase::Succeeded)
    }

    /// Returns true if the pod is running and its Ready condition is true.
    ///
    /// Upstream: `isRunningAndReady`.
    pub fn is_running_and_ready(&self) -> bool {
        self.phase == PodPhase::Running && self.readiness.ready
    }

    /// Returns true if the pod has been ready for `min_ready_seconds` at `now`, independent of its
    /// phase.
    ///
    /// Upstream: `isRunningAndAvailable`, which ignores the phase as well.
    pub fn is_available(&self, min_ready_seconds: i32, now: Timestamp) -> bool {
        self.readiness.is_available(min_ready_seconds, now)
    }

    /// Returns true if the pod is unavailable or terminating.
    ///
    /// Upstream: `isUnavailable`.
    pub fn is_unavailable(&self, min_ready_seconds: i32, now: Timestamp) -> bool {
        !self.is_available(min_ready_seconds, now) || self.is_terminating()
    }
}

#[cfg(test)]
mod tests {
    use statefulset_client::cache::indexer::CachedObject as _;

    use super::*;
    use crate::testing::builders;

    const POD: &str = r#"{"kind":"Pod","metadata":{"name":"web-0","namespace":"ns","uid":"u",
        "resourceVersion":"7","labels":{"controller-revision-hash":"web-1","a":"b"},
        "ownerReferences":[{"apiVersion":"v1","kind":"X","name":"x","uid":"x"},
          {"apiVersion":"apps/v1","kind":"StatefulSet","name":"web","uid":"s","controller":true}]},
        "spec":{"containers":[{"name":"c"}],"volumes":[{"name":"cfg","configMap":{"name":"c"}},
          {"name":"data","persistentVolumeClaim":{"claimName":"data-web-0"}}]},
        "status":{"phase":"Running","conditions":[
          {"type":"PodScheduled","status":"True"},
          {"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-03-01T11:58:38Z"},
          {"type":"Ready","status":"False"}]}}"#;

    #[test]
    fn pod_keeps_only_members_for_decisions() {
        let pod = Pod::decode(POD).unwrap();
        assert_eq!(pod.key().to_string(), "ns/web-0");
        assert_eq!(pod.revision(), "web-1");
        assert_eq!(&*pod.controller.as_ref().unwrap().uid, "s");
        assert_eq!(pod.claim_volumes.len(), 1);
        assert_eq!(&*pod.claim_volumes[0].claim_name, "data-web-0");
        assert!(
            pod.is_running_and_ready(),
            "the first Ready condition counts"
        );
        assert!(!pod.is_terminating());
    }

    #[test]
    fn pod_without_status_was_never_stored() {
        let pod =
            Pod::decode(r#"{"metadata":{"name":"web-0","labels":null},"status":null}"#).unwrap();
        assert!(!pod.is_created());
        assert!(pod.is_unavailable(0, Timestamp::UNIX_EPOCH));
        assert!(pod.controller.is_none());
    }

    #[test]
    fn unready_pod_tells_since_when_and_its_trouble() {
        let unready = |status: &str| {
            let created = r#"{"name":"web-0","creationTimestamp":"2026-03-01T10:00:00Z"}"#;
            let text = format!(r#"{{"metadata":{created},"status":{status}}}"#);
            Pod::decode(&text).unwrap().unready.map(|unready| *unready)
        };
        let at = |text: &str| Some(text.parse().unwrap());
        let waits =
            |reason: &str| format!(r#"[{{"state":{{"waiting":{{"reason":"{reason}"}}}}}}]"#);
        assert_eq!(
            unready(&format!(
                r#"{{"phase":"Pending","containerStatuses":{},"initContainerStatuses":{}}}"#,
                waits("CrashLoopBackOff"),
                waits("ImagePullBackOff")
            )),
            Some(Unready {
                since: at("2026-03-01T10:00:00Z"),
                trouble: Some(ContainerTrouble::ImagePull),
            })
        );
        let ready = |status: &str| {
            let since = "2026-03-01T11:00:00Z";
            format!(r#"[{{"type":"Ready","status":"{status}","lastTransitionTime":"{since}"}}]"#)
        };
        let (no, yes) = (ready("False"), ready("True"));
        for (containers, trouble) in [
            (
                waits("RunContainerError"),
                Some(ContainerTrouble::ContainerConfig),
            ),
            (waits("CrashLoopBackOff"), Some(ContainerTrouble::CrashLoop)),
            (waits("PodInitializing"), None),
            (
                r#"[{"state":{"running":{}}},{"state":null},{}]"#.to_owned(),
                None,
            ),
            (r#""odd""#.to_owned(), None),
        ] {
            let status = format!(r#"{{"conditions":{no},"containerStatuses":{containers}}}"#);
            let since = at("2026-03-01T11:00:00Z");
            assert_eq!(
                unready(&status),
                Some(Unready { since, trouble }),
                "{status}"
            );
        }
        let status = format!(
            r#"{{"conditions":{yes},"containerStatuses":{}}}"#,
            waits("CrashLoopBackOff")
        );
        assert_eq!(unready(&status), None);
    }

    #[test]
    fn predicates_follow_phase_condition_and_deletion() {
        let set = builders::set("web").build();
        let pod = || builders::pod(&set, 0).ready_since("2026-03-01T10:00:00Z");
        let now: Timestamp = "2026-03-01T10:00:30Z".parse().unwrap();
        let what = |pod: &Pod| {
            [
                pod.is_created(),
                pod.is_terminal(),
                pod.is_running_and_ready(),
                pod.is_available(30, now),
                pod.is_unavailable(30, now),
            ]
        };
        for (pod, expected) in [
            (pod(), [true, false, true, true, false]),
            (pod().terminating(), [true, false, true, true, true]),
            (pod().unready(), [true, false, false, false, true]),
            (pod().phase("Pending"), [true, false, false, true, false]),
            (pod().phase("Failed"), [true, true, false, true, false]),
            (pod().phase("Succeeded"), [true, true, false, true, false]),
            (pod().phase(""), [false, false, false, true, false]),
            (
                pod().ready_since("2026-03-01T10:00:01Z"),
                [true, false, true, false, true],
            ),
        ] {
            assert_eq!(what(&pod.build()), expected, "{}", pod.text());
        }
    }
}
