//! Pods that an update deletes, and its reasons to wait.

#![expect(
    clippy::unnecessary_wraps,
    reason = "expected values have the type of the actual values"
)]

use serde_json::{Value, json};
use statefulset_controller_util::testing::builders::{self, Builder};
use statefulset_pod_control::{NewPod, Ordinal};

use super::*;

fn web() -> Builder<StatefulSet> {
    builders::set("web").replicas(5)
}

/// Builds the slots of a set, one letter each from index 0: `o` old, `n` new, `O`/`N` the same but
/// unavailable, `t`/`u` old and new but terminating, `m` missing with the new revision, `M` with
/// the old one.
fn places(set: &StatefulSet, letters: &str) -> Vec<PodSlot> {
    let place = |(index, letter): (usize, char)| {
        let ordinal = Ordinal::of_index(set, index);
        let pod = builders::pod(set, ordinal);
        let is_new = matches!(letter, 'n' | 'N' | 'u' | 'm');
        let revision = if is_new { "web-new" } else { "web-old" };
        let pod = pod.revision(revision);
        let pod = match letter {
            'm' | 'M' => return PodSlot::Missing(NewPod::new(set, revision, ordinal)),
            'O' | 'N' => pod.unready(),
            't' | 'u' => pod.terminating(),
            _ => pod,
        };
        PodSlot::Existing(ordinal, Arc::new(pod.build()))
    };
    letters.chars().enumerate().map(place).collect()
}

/// The gates of 1.36 with `MaxUnavailableStatefulSet` on or off.
fn gates(max_unavailable: bool) -> FeatureGates {
    FeatureGates::default().max_unavailable_stateful_set(max_unavailable)
}

fn planned(
    set: &Builder<StatefulSet>,
    letters: &str,
    gate: bool,
) -> (Vec<String>, Option<Waiting>) {
    let gates = gates(gate);
    let set = set.build();
    let now = "2026-03-01T12:00:00Z".parse().unwrap();
    let plan = plan(&set, &places(&set, letters), "web-new", gates, now).unwrap();
    if gate {
        let unavailable = letters.chars().filter(|letter| !"on".contains(*letter));
        assert_eq!(plan.unavailable, Some(unavailable.count()));
    } else {
        assert_eq!(plan.unavailable, None);
    }
    let names = plan.delete.iter().map(|pod| pod.name.to_string());
    (names.collect(), plan.waiting)
}

fn updated(pod: &str) -> Option<Waiting> {
    Some(Waiting::PodUpdated(pod.into()))
}

fn unavailable(pod: &str) -> Option<Waiting> {
    Some(Waiting::UpdatedPodUnavailable(pod.into()))
}

#[test]
fn highest_old_pod_is_deleted_if_all_above_are_available() {
    for (letters, deleted, waiting) in [
        ("nnnnn", None, None),
        ("ooooo", Some("web-4"), updated("web-4")),
        ("ooonn", Some("web-2"), updated("web-2")),
        ("onnnn", Some("web-0"), updated("web-0")),
        // An outdated pod is deleted even if it is unavailable.
        ("oooOn", Some("web-3"), updated("web-3")),
        // An unavailable updated pod blocks the update.
        ("oooNn", None, unavailable("web-3")),
        ("ooooN", None, unavailable("web-4")),
        // An unavailable updated pod below the first outdated one doesn't.
        ("NNNon", Some("web-3"), updated("web-3")),
        // The update waits for terminating and missing pods, old or new.
        ("oooot", None, unavailable("web-4")),
        ("oooun", None, unavailable("web-3")),
        ("oooom", None, unavailable("web-4")),
    ] {
        let (names, waited) = planned(&web(), letters, false);
        assert_eq!(names, Vec::from_iter(deleted), "{letters}");
        assert_eq!(waited, waiting, "{letters}");
    }
}

#[test]
fn partition_is_an_index_and_keeps_pods_below_it() {
    for (set, letters, deleted) in [
        (web().partition(3), "ooooo", Some("web-4")),
        (web().partition(3), "oooon", Some("web-3")),
        (web().partition(3), "ooonn", None),
        (web().partition(5), "ooooo", None),
        (web().partition(9), "ooooo", None),
        (web().start(10).partition(3), "oooon", Some("web-13")),
        (web().start(10).partition(3), "ooonn", None),
    ] {
        let (names, _) = planned(&set, letters, false);
        assert_eq!(names, Vec::from_iter(deleted), "{letters}");
    }
}

#[test]
fn update_without_parameters_replaces_all_pods() {
    for kind in ["RollingUpdate", "Later"] {
        let set = web().with("spec.updateStrategy", json!({"type": kind}));
        let (names, _) = planned(&set, "onnnn", false);
        assert_eq!(names, ["web-0"], "{kind}");
    }
}

#[test]
fn missing_pod_is_not_deleted() {
    let set = web().with("spec.updateStrategy", json!({"type": "RollingUpdate"}));
    let (names, waited) = planned(&set, "ooooM", false);
    assert!(names.is_empty());
    assert_eq!(waited, unavailable("web-4"));
}

#[test]
fn on_delete_reports_first_old_pod_and_deletes_none() {
    for gate in [false, true] {
        let set = web().on_delete().build();
        let now = "2026-03-01T12:00:00Z".parse().unwrap();
        let gates = gates(gate);
        let plan_of = |letters| plan(&set, &places(&set, letters), "web-new", gates, now).unwrap();
        let plan = plan_of("ntoon");
        assert!(plan.delete.is_empty());
        let pod = "web-2".into();
        assert_eq!(plan.waiting, Some(Waiting::PodDeletionByUser(pod)));
        assert_eq!(plan_of("nnnnn").waiting, None);
    }
}

#[test]
fn gate_deletes_pods_within_the_unavailable_budget() {
    let budget = |pod: &str, unavailable, max_unavailable| {
        Some(Waiting::UnavailableBudget {
            pod: pod.into(),
            unavailable,
            max_unavailable,
        })
    };
    let set = |max: i32| web().max_unavailable(max);
    for (set, letters, deleted, waiting) in [
        (web(), "ooooo", vec!["web-4"], updated("web-4")),
        (set(2), "ooooo", vec!["web-4", "web-3"], updated("web-4")),
        (set(2), "oonoo", vec!["web-4", "web-3"], updated("web-4")),
        (set(2), "ooono", vec!["web-4", "web-2"], updated("web-4")),
        (
            set(9),
            "ooooo",
            vec!["web-4", "web-3", "web-2", "web-1", "web-0"],
            updated("web-4"),
        ),
        (set(0), "ooooo", vec!["web-4"], updated("web-4")),
        // Unavailable pods count at any ordinal and with any revision.
        (set(2), "oooNo", vec!["web-4"], updated("web-4")),
        (set(2), "Noooo", vec!["web-4"], updated("web-4")),
        (set(2), "ooooO", vec!["web-4"], updated("web-4")),
        (set(2), "Ooooo", vec!["web-4"], updated("web-4")),
        (set(2), "NoooN", vec![], budget("web-0", 2, 2)),
        (set(2), "NNNoo", vec![], budget("web-0", 3, 2)),
        (set(1), "ooomo", vec![], budget("web-3", 1, 1)),
        (set(2), "ooomt", vec![], budget("web-3", 2, 2)),
        // Terminating pods aren't deleted again.
        (set(3), "ooott", vec!["web-2"], updated("web-2")),
        (set(2), "nnnnn", vec![], None),
        (
            set(2).partition(4),
            "ooooo",
            vec!["web-4"],
            updated("web-4"),
        ),
        (
            set(2).partition(4),
            "Noooo",
            vec!["web-4"],
            updated("web-4"),
        ),
        (set(2).partition(5), "ooooo", vec![], None),
    ] {
        let (names, waited) = planned(&set, letters, true);
        assert_eq!(names, deleted, "{letters}");
        assert_eq!(waited, waiting, "{letters}");
    }
}

#[test]
fn percentage_is_rounded_down_to_at_least_one() {
    for (desired, replicas, expected) in [
        (json!("33%"), 5, 1),
        (json!("50%"), 5, 2),
        (json!("100%"), 5, 5),
        (json!("1%"), 5, 1),
        (json!("-1%"), 5, 1),
        (json!("99%"), 10, 9),
        (json!("50%"), 0, 1),
        (json!(0), 5, 1),
        (json!(-3), 5, 1),
        (json!(7), 5, 7),
        (Value::Null, 5, 1),
    ] {
        let set = web()
            .replicas(replicas)
            .max_unavailable(desired.clone())
            .build();
        assert_eq!(
            get_stateful_set_max_unavailable(&set),
            Ok(expected),
            "{desired}"
        );
    }
    let bare = web().with("spec.updateStrategy", json!({"type": "RollingUpdate"}));
    assert_eq!(get_stateful_set_max_unavailable(&bare.build()), Ok(1));
}

#[test]
fn invalid_percentage_fails_the_update_with_the_gate() {
    let set = web().max_unavailable("three").build();
    let now = "2026-03-01T12:00:00Z".parse().unwrap();
    let error = plan(&set, &places(&set, "ooooo"), "web-new", gates(true), now).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid value for IntOrString: invalid type: string is not a percentage"
    );
    plan(&set, &places(&set, "ooooo"), "web-new", gates(false), now).unwrap();
}
