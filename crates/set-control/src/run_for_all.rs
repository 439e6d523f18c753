//! Runs a step for each pod of a list, in order or in batches.

use futures::future::join_all;
use statefulset_controller_util::error::Aggregate;
use tokio::sync::Semaphore;
use tokio::task::coop::consume_budget;

use crate::error::Error;
use crate::waiting::Waiting;

/// Result of a step: the reason to wait, if any.
pub(crate) type Step = Result<Option<Waiting>, Error>;

/// Maximum number of pods per batch.
///
/// Upstream: `MaxBatchSize`.
pub(crate) const MAX_BATCH_SIZE: usize = 500;

/// Maximum number of steps in flight. Each keeps its requests in memory, about 16 kB, and an API
/// server handles 100 requests of a connection at once.
const MAX_IN_FLIGHT: usize = 50;

/// Runs a step for every item and returns the first reason to wait. A monotonic run stops at that
/// reason; otherwise all steps run, in batches.
///
/// # Errors
///
/// The first failure of a monotonic run; otherwise all failures of the first failed batch.
///
/// Upstream: `runForAll`.
pub(crate) async fn run_for_all<'a, T, Fut: Future<Output = Step>>(
    items: &'a [T],
    monotonic: bool,
    step: impl Fn(&'a T) -> Fut,
) -> Step {
    if !monotonic {
        return slow_start_batch(items, step).await;
    }
    for item in items {
        // Lets other sets run, even with many pods.
        consume_budget().await;
        if let Some(waiting) = step(item).await? {
            return Ok(Some(waiting));
        }
    }
    Ok(None)
}

/// Runs a step for every item in batches of 1, 2, 4, … up to [`MAX_BATCH_SIZE`], so a failure that
/// affects every step costs few requests.
///
/// Upstream: `slowStartBatch`.
async fn slow_start_batch<'a, T, Fut: Future<Output = Step>>(
    mut remaining: &'a [T],
    step: impl Fn(&'a T) -> Fut,
) -> Step {
    let (mut waiting, mut size) = (None, 1);
    while !remaining.is_empty() {
        let (batch, rest) = remaining.split_at(size.min(remaining.len()));
        waiting = waiting.or(run_batch(batch, &step).await?);
        size = (2 * batch.len()).min(MAX_BATCH_SIZE);
        remaining = rest;
    }
    Ok(waiting)
}

/// Runs a step for every item, up to [`MAX_IN_FLIGHT`] at once, in no guaranteed order.
pub(crate) async fn run_batch<'a, T, Fut: Future<Output = Step>>(
    batch: &'a [T],
    step: impl Fn(&'a T) -> Fut,
) -> Step {
    consume_budget().await;
    // Like upstream, sends the last call first: a server that fails a single call then fails the
    // same pod's.
    let (before, last) = batch.split_at(batch.len().saturating_sub(1));
    let slots = Semaphore::new(MAX_IN_FLIGHT);
    let in_slot = async |item| {
        let _slot = slots.acquire().await;
        step(item).await
    };
    let mut results = join_all(last.iter().chain(before).map(in_slot)).await;
    results.rotate_left(last.len());
    let waiting = results.iter().flatten().find_map(Clone::clone);
    let errors = results.into_iter().filter_map(Step::err).collect();
    Aggregate::join(errors).map(|()| waiting)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use kube_apimachinery::object_key::ObjectKey;

    use super::*;

    #[tokio::test]
    async fn batch_size_doubles_up_to_the_maximum() {
        let items: Vec<usize> = (0..1600).collect();
        // A failure ends the run with the batch.
        for (failing, expected) in [
            (0, 1),
            (1, 3),
            (3, 7),
            (6, 7),
            (7, 15),
            (254, 255),
            (255, 511),
            (511, 1011),
            (1010, 1011),
            (1011, 1511),
            (1511, 1600),
        ] {
            let calls = AtomicUsize::new(0);
            let step = async |item: &usize| {
                calls.fetch_add(1, Ordering::Relaxed);
                if *item == failing {
                    return Err(Error::RecreateDisabled(ObjectKey::new("ns", "web")));
                }
                Ok(None)
            };
            run_for_all(&items, false, step).await.unwrap_err();
            assert_eq!(calls.into_inner(), expected, "{failing}");
        }
    }

    #[tokio::test]
    async fn few_steps_are_in_flight() {
        let items = vec![(); 1600];
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let step = async |_item: &()| {
            most.fetch_max(
                running.fetch_add(1, Ordering::Relaxed) + 1,
                Ordering::Relaxed,
            );
            tokio::task::yield_now().await;
            running.fetch_sub(1, Ordering::Relaxed);
            Ok(None)
        };
        run_for_all(&items, false, step).await.unwrap();
        assert_eq!(most.into_inner(), MAX_IN_FLIGHT);
    }

    #[tokio::test]
    async fn other_tasks_run_between_many_pods() {
        for monotonic in [true, false] {
            let turns = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&turns);
            let mut others = tokio::task::JoinSet::new();
            others.spawn(async move {
                loop {
                    counted.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            });
            let items = vec![(); 100_000];
            let step = async |_item: &()| Ok(None);
            run_for_all(&items, monotonic, step).await.unwrap();
            assert!(turns.load(Ordering::Relaxed) > 0, "{monotonic}");
            others.shutdown().await;
        }
    }

    #[tokio::test]
    async fn only_monotonic_run_stops_at_first_reason_to_wait() {
        for (monotonic, expected) in [(true, 1), (false, 3)] {
            let calls = AtomicUsize::new(0);
            let step = async |pod: &&str| {
                calls.fetch_add(1, Ordering::Relaxed);
                Ok(Some(Waiting::PodNotReady((*pod).into())))
            };
            let waiting = run_for_all(&["a", "b", "c"], monotonic, step)
                .await
                .unwrap();
            assert_eq!(waiting, Some(Waiting::PodNotReady("a".into())));
            assert_eq!(calls.into_inner(), expected);
        }
    }
}
