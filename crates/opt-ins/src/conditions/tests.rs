//! Tests of the conditions, among them that tools read them as intended.

use std::sync::Arc;

use statefulset_controller_util::testing::builders::{self, Builder};

use super::*;
use crate::carrier::Carrier;
use crate::chosen::chosen;

/// The status of an object as kstatus computes it, for Flux, Helm and others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kstatus {
    Current,
    InProgress,
    Failed,
}

/// Computes the status by the rules that kstatus documents: first those for every object, then
/// those for StatefulSets.
fn kstatus(set: &StatefulSet, status: &StatefulSetStatus, is_on_delete: bool) -> Kstatus {
    if status.observed_generation != set.metadata.generation {
        return Kstatus::InProgress;
    }
    let conditions = status.conditions.as_ref();
    for condition in conditions.map(Conditions::list).unwrap_or_default() {
        match (&*condition.condition_type, &*condition.status) {
            ("Reconciling", "True") => return Kstatus::InProgress,
            ("Stalled", "True") => return Kstatus::Failed,
            _ => {}
        }
    }
    if is_on_delete {
        return Kstatus::Current;
    }
    let replicas = set.spec.replicas;
    let rolling_update = set.spec.update_strategy.rolling_update.as_ref();
    let is_short = replicas > status.replicas || replicas > status.ready_replicas;
    if is_short || status.replicas > replicas {
        return Kstatus::InProgress;
    }
    match rolling_update {
        Some(it) if status.updated_replicas < replicas - it.partition => Kstatus::InProgress,
        None if replicas > status.current_replicas => Kstatus::InProgress,
        None if status.current_revision != status.update_revision => Kstatus::InProgress,
        _ => Kstatus::Current,
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn web() -> Builder<StatefulSet> {
    builders::set("web")
        .replicas(3)
        .annotation(Carrier::Conditions.annotation(), "true")
}

/// A status of this generation with these numbers of updated and of available pods, of three.
fn status(set: &StatefulSet, updated: i32, available: i32) -> StatefulSetStatus {
    StatefulSetStatus {
        observed_generation: set.metadata.generation,
        replicas: 3,
        ready_replicas: available,
        available_replicas: available,
        updated_replicas: updated,
        current_replicas: 3,
        update_revision: "web-2".into(),
        current_revision: if updated == 3 { "web-2" } else { "web-1" }.into(),
        ..StatefulSetStatus::default()
    }
}

/// Reports a status about a set whose recorded status has the one given conditions.
fn reported(
    set: &StatefulSet,
    status: &mut StatefulSetStatus,
    cause: Cause,
    now: Timestamp,
) -> Report {
    let gates = FeatureGates::default().with_opt_ins();
    let opt_ins = chosen(set, &gates.into());
    let detail = String::new();
    let situation = Situation { cause, detail };
    report(set, &opt_ins, gates, status, Some(&situation), now)
}

#[test]
fn status_tools_see_each_cause_as_it_is() {
    for cause in Cause::ALL {
        let set = if cause == Cause::OnDelete {
            web().on_delete().build()
        } else {
            web().build()
        };
        let (updated, available) = match cause.state() {
            CauseState::Settled => (3, 3),
            CauseState::Held => (1, 3),
            CauseState::Working | CauseState::Stuck => (1, 2),
        };
        let mut status = status(&set, updated, available);
        reported(&set, &mut status, cause, at("2026-03-01T12:00:00Z"));
        let expected = match cause.state() {
            CauseState::Settled => Kstatus::Current,
            CauseState::Stuck => Kstatus::Failed,
            CauseState::Held if cause == Cause::OnDelete => Kstatus::Current,
            // A held rollout isn't complete, and no failure.
            CauseState::Held | CauseState::Working => Kstatus::InProgress,
        };
        let is_on_delete = cause == Cause::OnDelete;
        assert_eq!(kstatus(&set, &status, is_on_delete), expected, "{cause:?}");
    }
    // Pods below a partition are where the spec wants them.
    let set = web().partition(2).build();
    let mut status = status(&set, 1, 3);
    reported(
        &set,
        &mut status,
        Cause::Partition,
        at("2026-03-01T12:00:00Z"),
    );
    assert_eq!(kstatus(&set, &status, false), Kstatus::Current);
}

#[test]
fn what_counts_as_progress() {
    let set = web().with("metadata.generation", 7).build();
    let recorded = status(&set, 1, 2);
    let with = |change: fn(&mut StatefulSetStatus)| {
        let mut status = recorded.clone();
        change(&mut status);
        let mut set = set.clone();
        set.status = Arc::new(recorded.clone());
        has_progressed(&set, &status)
    };
    assert!(!with(|_| {}));
    assert!(with(|it| it.observed_generation += 1));
    assert!(with(|it| it.update_revision = "web-3".into()));
    assert!(with(|it| it.updated_replicas += 1));
    assert!(with(|it| it.available_replicas += 1));
    assert!(!with(|it| it.ready_replicas += 1), "ready is not available");
    for setback in [
        |it: &mut StatefulSetStatus| it.updated_replicas -= 1,
        |it: &mut StatefulSetStatus| it.available_replicas -= 1,
        |it: &mut StatefulSetStatus| it.replicas -= 1,
        |it: &mut StatefulSetStatus| it.replicas += 1,
        |it: &mut StatefulSetStatus| it.current_revision = "web-2".into(),
    ] {
        assert!(!with(setback));
    }
    let mut short = set.clone();
    short.status = Arc::new(StatefulSetStatus {
        replicas: 1,
        ..recorded.clone()
    });
    assert!(
        has_progressed(&short, &recorded),
        "a missing pod was created"
    );
}

#[test]
fn conditions_keep_their_times_while_their_status_stays() {
    let mut set = web().build();
    let mut first = status(&set, 1, 2);
    reported(
        &set,
        &mut first,
        Cause::PodStarting,
        at("2026-03-01T12:00:00Z"),
    );
    set.status = Arc::new(first.clone());
    let mut second = first.clone();
    reported(
        &set,
        &mut second,
        Cause::ImagePull,
        at("2026-03-01T12:05:00Z"),
    );
    let times = |status: &StatefulSetStatus| {
        let conditions = status.conditions.as_ref().unwrap().list();
        let minute = |it: &Condition| it.last_transition_time[14..16].to_owned();
        let named = |it: &Condition| (it.condition_type.to_string(), minute(it));
        conditions.iter().map(named).collect::<Vec<_>>()
    };
    let named = |times: [(&str, &str); 4]| {
        times
            .map(|(kind, minute)| (kind.to_owned(), minute.to_owned()))
            .to_vec()
    };
    assert_eq!(
        times(&second),
        named([
            ("Available", "00"),
            ("Stalled", "05"),
            // No progress since the beginning.
            ("Reconciling", "00"),
            ("Progressing", "05"),
        ])
    );
    set.status = Arc::new(second.clone());
    let mut third = status(&set, 2, 3);
    third.conditions.clone_from(&second.conditions);
    reported(
        &set,
        &mut third,
        Cause::PodStarting,
        at("2026-03-01T12:09:00Z"),
    );
    assert_eq!(
        times(&third),
        named([
            ("Available", "09"),
            ("Stalled", "09"),
            ("Reconciling", "09"),
            ("Progressing", "09"),
        ])
    );
}

#[test]
fn crash_loop_stays_stalled_while_its_container_runs() {
    let mut set = web().build();
    let crash = status(&set, 1, 2);
    let report_cause = |set: &StatefulSet, counted: &StatefulSetStatus, cause| {
        let mut status = counted.clone();
        status.conditions.clone_from(&set.status.conditions);
        reported(set, &mut status, cause, at("2026-03-01T12:00:00Z"));
        status
    };
    let stalled = |status: &StatefulSetStatus| {
        let stalled = status.conditions.as_ref().unwrap().get(STALLED).unwrap();
        format!("{} {}", stalled.status, stalled.reason)
    };
    let first = report_cause(&set, &crash, Cause::CrashLoop);
    assert_eq!(stalled(&first), "True CrashLoop");
    set.status = Arc::new(first.clone());
    let running = report_cause(&set, &crash, Cause::PodStarting);
    assert_eq!(running, first, "no write");
    for (counted, cause, expected) in [
        (crash.clone(), Cause::Terminating, "False Terminating"),
        (status(&set, 2, 2), Cause::PodStarting, "False PodStarting"),
        (status(&set, 1, 3), Cause::PodStarting, "False PodStarting"),
    ] {
        let later = report_cause(&set, &counted, cause);
        assert_eq!(stalled(&later), expected, "{counted:?}");
    }
}

#[test]
fn own_conditions_are_told_from_others() {
    let condition = |kind: &str, reason: &str| Condition {
        condition_type: kind.into(),
        reason: reason.into(),
        ..Condition::default()
    };
    for (kind, reason, expected) in [
        ("Stalled", "ImagePull", true),
        ("Stalled", "HealthCheckFailed", false),
        ("Progressing", "Settled", true),
        ("Progressing", "RecreateCompleted", false),
        ("Available", "AllPodsAvailable", true),
        ("Available", "MinimumReplicasAvailable", false),
        ("OptInsValid", "InvalidAnnotation", true),
        ("Theirs", "ImagePull", false),
    ] {
        assert_eq!(
            is_own(&condition(kind, reason)),
            expected,
            "{kind} {reason}"
        );
    }
}

#[test]
fn set_that_is_being_deleted_keeps_its_conditions() {
    let set = web().build();
    let mut status = status(&set, 3, 3);
    reported(
        &set,
        &mut status,
        Cause::Settled,
        at("2026-03-01T12:00:00Z"),
    );
    let before = status.clone();
    let gates = FeatureGates::default().with_opt_ins();
    let none = OptIns::default();
    let now = at("2026-03-01T13:00:00Z");
    assert_eq!(
        report(&set, &none, gates, &mut status, None, now),
        Report::default()
    );
    assert_eq!(status, before);
}
