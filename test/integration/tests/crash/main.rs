//! Crash tests: the controller dies at each write of a scenario, and a new one continues.
//!
//! A scenario first runs undisturbed. It then runs again for each write of that run and each
//! [`Fault`] at that write. The end state must equal that of the undisturbed run, and the
//! invariants must hold throughout.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod end_state;
mod fault_point;
mod invariants;
mod pod_log;
mod run;
mod scenario;

use fault_point::{Fault, FaultPoint};
use run::Run;
use scenario::Scenario;

/// Applies each fault to each write of the scenario. Returns the number of writes.
async fn fault_each_write(scenario: Scenario) -> usize {
    let reference = Run::undisturbed(scenario).await;
    reference.assert_invariants();
    let writes = reference.writes.len();
    let mut points = 0;
    for write in 1..=writes {
        for fault in Fault::ALL {
            let point = FaultPoint { write, fault };
            let run = Run::with_fault(scenario, point).await;
            reference.assert_hit(point, &run);
            run.assert_invariants();
            run.assert_ends_as(&reference);
            points += 1;
        }
    }
    assert_eq!(points, writes * Fault::ALL.len());
    writes
}

#[tokio::test(start_paused = true)]
async fn ordered_creation_survives_a_crash_at_each_write() {
    integration::embedded_only!("stops single requests of the controller");
    // One revision; a claim, a pod and statuses for each of the 3 pods.
    let writes = fault_each_write(Scenario::OrderedCreation).await;
    assert!(writes >= 10, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn parallel_creation_survives_a_crash_at_each_write() {
    integration::embedded_only!("stops single requests of the controller");
    // One revision; a claim and a pod for each of the 4 pods; statuses.
    let writes = fault_each_write(Scenario::ParallelCreation).await;
    assert!(writes >= 10, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn rollout_survives_a_crash_at_each_write() {
    integration::embedded_only!("stops single requests of the controller");
    // One revision; a deletion, a creation and statuses for each of the 3 pods.
    let writes = fault_each_write(Scenario::Rollout).await;
    assert!(writes >= 10, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn scale_down_survives_a_crash_at_each_write() {
    integration::embedded_only!("stops single requests of the controller");
    // The claim's owner and a deletion for each of the 2 pods; statuses.
    let writes = fault_each_write(Scenario::ScaleDown).await;
    assert!(writes >= 6, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn parallel_scale_down_survives_a_crash_at_each_write() {
    integration::embedded_only!("stops single requests of the controller");
    let writes = fault_each_write(Scenario::ParallelScaleDown).await;
    assert!(writes >= 6, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn adoption_survives_a_crash_at_each_write() {
    integration::embedded_only!("stops single requests of the controller");
    // A revision, 3 pods and the status.
    let writes = fault_each_write(Scenario::Adoption).await;
    assert!(writes >= 5, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn rollback_survives_a_crash_at_each_write() {
    integration::embedded_only!("stops single requests of the controller");
    // The revision's new number; a deletion, a creation and statuses for each of the 2 pods.
    let writes = fault_each_write(Scenario::Rollback).await;
    assert!(writes >= 7, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn history_truncation_survives_a_crash_at_each_write() {
    integration::embedded_only!("stops single requests of the controller");
    // One revision is created and another deleted; the pod is replaced.
    let writes = fault_each_write(Scenario::Truncation).await;
    assert!(writes >= 5, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn retention_policy_change_survives_a_crash_at_each_write() {
    integration::embedded_only!("stops single requests of the controller");
    // The owners of 3 claims, and the status.
    let writes = fault_each_write(Scenario::RetentionPolicy).await;
    assert!(writes >= 3, "{writes} writes");
}
