//! The controller dies at each single write of a scenario, and a fresh one goes on.
//!
//! A scenario runs once undisturbed. It then runs again for each write of that run and for each
//! [`Fault`] at that write. The end state must be that of the undisturbed run, and the invariants
//! must hold on the way.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod end_state;
mod invariants;
mod moment;
mod pod_log;
mod run;
mod scenario;

use moment::{Fault, Moment};
use run::Run;
use scenario::Scenario;

/// Strikes each write of the scenario with each fault. Returns how many writes there are.
async fn strike_each_write(scenario: Scenario) -> usize {
    let reference = Run::undisturbed(scenario).await;
    reference.assert_invariants();
    let writes = reference.writes.len();
    let mut moments = 0;
    for write in 1..=writes {
        for fault in Fault::ALL {
            let moment = Moment { write, fault };
            let run = Run::struck(scenario, moment).await;
            reference.assert_strikes(moment, &run);
            run.assert_invariants();
            run.assert_ends_as(&reference);
            moments += 1;
        }
    }
    assert_eq!(moments, writes * Fault::ALL.len());
    writes
}

#[tokio::test(start_paused = true)]
async fn ordered_creation_survives_a_crash_at_each_write() {
    integration::embedded_only!("stops single requests of the controller");
    // One revision; for each of the 3 pods a claim, the pod, and statuses.
    let writes = strike_each_write(Scenario::OrderedCreation).await;
    assert!(writes >= 10, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn parallel_creation_survives_a_crash_at_each_write() {
    integration::embedded_only!("stops single requests of the controller");
    // One revision; for each of the 4 pods a claim and the pod; statuses.
    let writes = strike_each_write(Scenario::ParallelCreation).await;
    assert!(writes >= 10, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn a_rollout_survives_a_crash_at_each_write() {
    integration::embedded_only!("stops single requests of the controller");
    // One revision; for each of the 3 pods a deletion, a creation, and statuses.
    let writes = strike_each_write(Scenario::Rollout).await;
    assert!(writes >= 10, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn a_scale_down_survives_a_crash_at_each_write() {
    integration::embedded_only!("stops single requests of the controller");
    // For each of the 2 pods the owner of its claim, and a deletion; statuses.
    let writes = strike_each_write(Scenario::ScaleDown).await;
    assert!(writes >= 6, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn a_parallel_scale_down_survives_a_crash_at_each_write() {
    integration::embedded_only!("stops single requests of the controller");
    let writes = strike_each_write(Scenario::ParallelScaleDown).await;
    assert!(writes >= 6, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn adoption_survives_a_crash_at_each_write() {
    integration::embedded_only!("stops single requests of the controller");
    // A revision, 3 pods, and the status.
    let writes = strike_each_write(Scenario::Adoption).await;
    assert!(writes >= 5, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn a_rollback_survives_a_crash_at_each_write() {
    integration::embedded_only!("stops single requests of the controller");
    // The revision's new number; for each of the 2 pods a deletion, a creation, and statuses.
    let writes = strike_each_write(Scenario::Rollback).await;
    assert!(writes >= 7, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn history_truncation_survives_a_crash_at_each_write() {
    integration::embedded_only!("stops single requests of the controller");
    // A revision comes and another goes; the pod is replaced.
    let writes = strike_each_write(Scenario::Truncation).await;
    assert!(writes >= 5, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn a_new_retention_policy_survives_a_crash_at_each_write() {
    integration::embedded_only!("stops single requests of the controller");
    // The owners of 3 claims, and the status.
    let writes = strike_each_write(Scenario::RetentionPolicy).await;
    assert!(writes >= 3, "{writes} writes");
}
