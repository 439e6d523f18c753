//! Runs a step for each pod of a list, in order or in batches.

use futures::future::join_all;
use statefulset_controller_util::error::Aggregate;
use tokio::task::coop::consume_budget;

use crate::error::Error;
use crate::waiting::Waiting;

/// Result of a step: the reason to wait, if any.
pub(crate) type Step = Result<Option<Waiting>, Error>;

/// Maximum of pods per batch.
///
/// Upstream: `MaxBatchSize`.
pub(crate) const MAX_BATCH_SIZE: usize = 500;

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

/// Runs a step for every item in parallel, in no guaranteed order.
pub(crate) async fn run_batch<'a, T, Fut: Future<Output = Step>>(
    batch: &'a [T],
    step: impl Fn(&'a T) -> Fut,
) -> Step {
    consume_budget().await;
    // Like the reference, sends the last call first: a server that fails a single call then fails the
    // same pod's.
    let (before, last) = batch.split_at(batch.len().saturating_sub(1));
    let mut results = join_all(last.iter().chain(before).map(step)).await;
    results.rotate_left(last.len());
    let (mut waiting, mut errors) = (None, Vec::new());
    for result in results {
        match result {
            Ok(reason) => waiting = waiting.or(reason),
            Err(error) => errors.push(error),
        }
    }
    Aggregate::join(errors).map(|()| waiting)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test]
    async fn batch_size_doubles_up_to_the_maximum() {
        let items: Vec<usize> = (0..1600).collect();
        let running = Mutex::new((0_usize, Vec::new()));
        let step = async |_item: &usize| {
            running.lock().unwrap().0 += 1;
            tokio::task::yield_now().await;
            let mut running = running.lock().unwrap();
            let width = running.0;
            if width > 0 {
                running.1.push(width);
                running.0 = 0;
            }
            Ok(None)
        };
        let waiting = run_for_all(&items, false, step).await.unwrap();
        assert_eq!(waiting, None);
        assert_eq!(
            running.into_inner().unwrap().1,
            [1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 500, 89]
        );
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
