//! Counters of a status.

use statefulset_controller_util::testing::builders::{self, Builder};

use crate::status::*;

fn counts(pods: &[Builder<Pod>], min_ready_seconds: i32) -> [i32; 5] {
    let set = builders::set("web")
        .min_ready_seconds(min_ready_seconds)
        .build();
    let mut status = StatefulSetStatus {
        current_revision: "web-1".into(),
        update_revision: "web-2".into(),
        // From an earlier count.
        replicas: 9,
        ready_replicas: 9,
        current_replicas: 9,
        updated_replicas: 9,
        available_replicas: 9,
        ..StatefulSetStatus::default()
    };
    let pods: Vec<Pod> = pods.iter().map(Builder::build).collect();
    let now = "2026-03-01T12:00:00Z".parse().unwrap();
    update_status(&mut status, &set, &pods, now);
    [
        status.replicas,
        status.ready_replicas,
        status.available_replicas,
        status.current_replicas,
        status.updated_replicas,
    ]
}

fn pod(revision: &str) -> Builder<Pod> {
    builders::pod(&builders::set("web").build(), 0).revision(revision)
}

#[test]
fn status_counts_each_kind_of_pod() {
    for (pod, expected) in [
        (pod("web-1"), [1, 1, 1, 1, 0]),
        (pod("web-2"), [1, 1, 1, 0, 1]),
        (pod("web-0"), [1, 1, 1, 0, 0]),
        (pod("web-1").unready(), [1, 0, 0, 1, 0]),
        (pod("web-1").pending(), [1, 0, 0, 1, 0]),
        (pod("web-1").phase("Pending"), [1, 0, 0, 1, 0]),
        (pod("web-1").phase("Failed"), [1, 0, 0, 1, 0]),
        (pod("web-1").phase("Never heard of"), [1, 0, 0, 1, 0]),
        (pod("web-1").terminating(), [1, 1, 1, 0, 0]),
        (pod("web-1").without("status"), [0, 0, 0, 0, 0]),
    ] {
        let text = pod.text();
        assert_eq!(counts(&[pod], 0), expected, "{text}");
    }
}

#[test]
fn pod_is_available_from_the_exact_moment_on() {
    let since = |moment: &str| [pod("web-1").ready_since(moment)];
    assert_eq!(counts(&since("2026-03-01T11:59:01Z"), 60), [1, 1, 0, 1, 0]);
    assert_eq!(counts(&since("2026-03-01T11:59:00Z"), 60), [1, 1, 1, 1, 0]);
    let unknown = pod("web-1").without("status.conditions.0.lastTransitionTime");
    assert_eq!(counts(&[unknown], 60), [1, 1, 0, 1, 0]);
}

#[test]
fn single_revision_counts_as_current_and_updated() {
    let set = builders::set("web").build();
    let mut status = StatefulSetStatus {
        current_revision: "web-1".into(),
        update_revision: "web-1".into(),
        ..StatefulSetStatus::default()
    };
    let pods = [pod("web-1").build(), pod("web-1").build()];
    let now = "2026-03-01T12:00:00Z".parse().unwrap();
    update_status(&mut status, &set, &pods, now);
    assert_eq!((status.current_replicas, status.updated_replicas), (2, 2));
}
