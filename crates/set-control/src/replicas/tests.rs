//! Slots of pods, and revisions of missing pods.

use serde_json::{Value, json};
use statefulset_controller_util::testing::builders::{self, Builder};
use statefulset_history::RevisionData;

use super::*;

/// A time after every built pod became ready.
fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn partition(set: &Builder<StatefulSet>, pods: impl IntoIterator<Item = Builder<Pod>>) -> Replicas {
    let revision = |name: &str, set: &Builder<StatefulSet>| {
        let data = RevisionData::new(&set.build().spec.template).unwrap();
        builders::revision(&set.build(), name, 1, data.recorded()).build()
    };
    let old = set.clone().image("registry.example/app:old");
    let (old, new) = (revision("web-1", &old), revision("web-2", set));
    let (old, new, set) = (Arc::new(old), Arc::new(new), set.build());
    let current = SetRevision::new(&set, &old).unwrap();
    let update = SetRevision::new(&set, &new).unwrap();
    let pods: Vec<Arc<Pod>> = pods.into_iter().map(|pod| Arc::new(pod.build())).collect();
    Replicas::new(&set, &current, &update, &pods, now()).unwrap()
}

fn web() -> Builder<StatefulSet> {
    builders::set("web")
}

fn pod(ordinal: i32) -> Builder<Pod> {
    builders::pod(&web().build(), ordinal)
}

fn names(slots: &[PodSlot]) -> Vec<String> {
    let name = |slot: &PodSlot| match slot {
        PodSlot::Existing(_, pod) => pod.name.to_string(),
        PodSlot::Missing(pod) => format!("({})", pod.name),
    };
    slots.iter().map(name).collect()
}

#[test]
fn desired_pods_ascend_and_condemned_pods_descend() {
    let set = web().replicas(3).start(2);
    let pods = [1, 4, 7, 2, 0, 12, 5].map(pod);
    let replicas = partition(&set, pods);
    assert_eq!(names(&replicas.desired), ["web-2", "(web-3)", "web-4"]);
    assert_eq!(
        names(&replicas.condemned),
        ["web-12", "web-7", "web-5", "web-1", "web-0"]
    );
    let all: Vec<&str> = replicas.pods().map(|pod| &*pod.name).collect();
    assert_eq!(
        all,
        [
            "web-2", "web-4", "web-12", "web-7", "web-5", "web-1", "web-0"
        ]
    );
}

#[test]
fn pod_without_ordinal_gets_no_slot() {
    let strays = ["bar", "web", "web-2147483648"].map(|name| pod(0).with("metadata.name", name));
    let replicas = partition(&web().replicas(1), strays);
    assert_eq!(names(&replicas.desired), ["(web-0)"]);
    assert!(replicas.condemned.is_empty());
}

#[test]
fn later_of_two_pods_gets_the_slot() {
    let replicas = partition(
        &web().replicas(1),
        vec![pod(0), pod(0).with("metadata.name", "web-00")],
    );
    assert_eq!(names(&replicas.desired), ["web-00"]);
}

#[test]
fn desired_pod_without_phase_counts_as_missing() {
    let replicas = partition(
        &web().replicas(1),
        vec![pod(0).without("status"), pod(1).without("status")],
    );
    assert_eq!(names(&replicas.desired), ["(web-0)"]);
    assert_eq!(names(&replicas.condemned), ["web-1"]);
}

#[test]
fn zero_replicas_condemn_every_pod() {
    let replicas = partition(&web().replicas(0), vec![pod(0), pod(1)]);
    assert!(replicas.desired.is_empty());
    assert_eq!(names(&replicas.condemned), ["web-1", "web-0"]);
}

#[test]
fn first_unavailable_is_lowest_desired_then_lowest_condemned() {
    let set = web().replicas(2);
    for (pods, expected) in [
        (vec![pod(0), pod(1), pod(2), pod(3)], None),
        (
            vec![pod(0), pod(1).unready(), pod(2).unready()],
            Some("web-1"),
        ),
        (vec![pod(0), pod(2).unready()], Some("web-1")),
        (vec![pod(0), pod(1).terminating()], Some("web-1")),
        (
            vec![pod(0), pod(1), pod(3).unready(), pod(4).unready()],
            Some("web-3"),
        ),
        (
            vec![
                pod(0),
                pod(1),
                pod(4).terminating(),
                pod(3),
                pod(2).unready(),
            ],
            Some("web-2"),
        ),
        // The phase is ignored.
        (vec![pod(0).phase("Pending"), pod(1)], None),
    ] {
        let replicas = partition(&set, pods);
        assert_eq!(replicas.first_unavailable.as_deref(), expected);
    }
    let waiting = set.min_ready_seconds(60);
    let late = pod(1).ready_since("2026-03-01T11:59:01Z");
    let replicas = partition(&waiting, vec![pod(0), late]);
    assert_eq!(replicas.first_unavailable.as_deref(), Some("web-1"));
    let exact = pod(1).ready_since("2026-03-01T11:59:00Z");
    let replicas = partition(&waiting, vec![pod(0), exact]);
    assert_eq!(replicas.first_unavailable, None);
}

/// Revisions of the missing pods.
fn revisions(set: &Builder<StatefulSet>) -> Vec<String> {
    let replicas = partition(set, Vec::new());
    let mut revisions = Vec::new();
    for slot in &replicas.desired {
        let PodSlot::Missing(pod) = slot else {
            panic!("{slot:?}")
        };
        let body: Value = serde_json::from_str(&pod.body().unwrap()).unwrap();
        let image = &body["spec"]["containers"][0]["image"];
        let is_current = image == "registry.example/app:old";
        assert_eq!(
            is_current,
            *pod.revision == *"web-1",
            "the template belongs to the revision"
        );
        revisions.push(pod.revision.to_string());
    }
    revisions
}

#[test]
fn missing_pod_below_partition_has_current_revision() {
    let (current, update) = ("web-1", "web-2");
    for (set, expected) in [
        (web().partition(0), [update, update, update]),
        (web().partition(2), [current, current, update]),
        (web().partition(9), [current, current, current]),
        // The partition counts from the first ordinal.
        (web().start(5).partition(1), [current, update, update]),
        // With parameters, the type is ignored.
        (
            web()
                .partition(1)
                .with("spec.updateStrategy.type", "OnDelete"),
            [current, update, update],
        ),
    ] {
        // An ordered set would show only the first missing pod.
        assert_eq!(revisions(&set.replicas(3).parallel()), expected);
    }
}

#[test]
fn current_replicas_decide_without_rolling_update_params() {
    let (current, update) = ("web-1", "web-2");
    let set = |strategy: &str| {
        web()
            .parallel()
            .replicas(3)
            .start(4)
            .with("spec.updateStrategy", json!({"type": strategy}))
            .with("status.currentReplicas", 2)
    };
    assert_eq!(revisions(&set("RollingUpdate")), [current, current, update]);
    assert_eq!(revisions(&set("OnDelete")), [update, update, update]);
    assert_eq!(revisions(&set("Later")), [update, update, update]);
    assert_eq!(revisions(&set("")), [update, update, update]);
}

#[test]
fn ordinals_past_the_largest_get_slots() {
    let set = web().replicas(2).start(i32::MAX).partition(1);
    let replicas = partition(&set, vec![pod(i32::MAX), pod(0)]);
    assert_eq!(
        names(&replicas.desired),
        ["web-2147483647", "(web-2147483648)"]
    );
    assert_eq!(names(&replicas.condemned), ["web-0"]);
    assert_eq!(replicas.desired[1].revision(), "web-2");
}

#[test]
fn huge_replica_count_allocates_few_slots() {
    let replicas = partition(&web().replicas(i32::MAX), vec![pod(0), pod(7)]);
    assert_eq!(names(&replicas.desired), ["web-0", "(web-1)", "web-7"]);
    assert!(!replicas.is_complete);

    let replicas = partition(&web().parallel().replicas(i32::MAX), vec![pod(0)]);
    assert_eq!(replicas.desired.len(), MISSING_PODS_MAX + 1);
    assert!(!replicas.is_complete);
}
