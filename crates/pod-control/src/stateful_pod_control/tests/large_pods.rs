//! Pods with large templates.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;

use super::*;

/// A set of this name with a large template.
fn set_with_note(name: &str, bytes: usize) -> StatefulSet {
    let note = "spec.template.metadata.annotations.note";
    let set = builders::set(name).uid(name).with(note, "x".repeat(bytes));
    set.build()
}

fn missing(set: &StatefulSet, ordinal: i32) -> PodSlot {
    PodSlot::Missing(new_pod(set, ordinal))
}

/// Number of turns that another task gets while 40 pods are created at once.
async fn turns_of_others(bytes: usize) -> usize {
    let world = ApiWorld::new();
    let set = set_with_note("web", bytes);
    let control = world.control.for_sync(&set);
    let pods: Vec<PodSlot> = (0..40).map(|ordinal| missing(&set, ordinal)).collect();
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    let mut others = tokio::task::JoinSet::new();
    others.spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let created = pods.iter().map(|pod| control.create_stateful_pod(pod));
    assert!(join_all(created).await.iter().all(Result::is_ok));
    others.shutdown().await;
    turns.load(Ordering::Relaxed)
}

#[tokio::test]
async fn other_tasks_run_between_large_pods() {
    let small = turns_of_others(10).await;
    let large = turns_of_others(LARGE_TEMPLATE_BYTES).await;
    assert!(large >= small + 40 / LARGE_PODS_MAX, "{small} {large}");
}

#[tokio::test]
async fn sets_dont_wait_for_each_others_large_pods() {
    let world = ApiWorld::new();
    let slow = set_with_note("slow", LARGE_TEMPLATE_BYTES);
    let other = set_with_note("other", LARGE_TEMPLATE_BYTES);
    let (slow_control, other_control) = (
        world.control.for_sync(&slow),
        world.control.for_sync(&other),
    );
    let turns = slow_control.large_pods.acquire_many(4).await.unwrap();
    let slow_pod = missing(&slow, 0);
    let waiting = slow_control.create_stateful_pod(&slow_pod);
    tokio::pin!(waiting);
    assert!(futures::poll!(&mut waiting).is_pending());
    let other_pod = missing(&other, 0);
    other_control.create_stateful_pod(&other_pod).await.unwrap();
    assert!(futures::poll!(&mut waiting).is_pending());
    drop(turns);
    waiting.await.unwrap();
}
