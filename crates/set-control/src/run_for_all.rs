//! Runs a step for each pod of a list, in order or in batches.

use futures::future::join_all;
use tokio::task::coop::consume_budget;

use crate::error::Error;
use crate::waiting::Waiting;

/// Maximum of pods per batch.
///
/// Upstream: `MaxBatchSize`.
const MAX_BATCH_SIZE: usize = 500;

/// Runs a step for every item and returns the first reason to wait. A monotonic run stops at that
/// reason; otherwise all steps run, in batches.
///
/// # Errors
///
/// The first failure of a monotonic run; otherwise all failures of the first failed batch.
///
/// Upstream: `runForAll`.
pub(crate) async fn run_for_all<'a, T, F, Fut>(
    items: &'a [T],
    monotonic: bool,
    step: F,
) -> Result<Option<Waiting>, Error>
where
    F: Fn(&'a T) -> Fut,
    Fut: Future<Output = Result<Option<Waiting>, Error>>,
{
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
async fn slow_start_batch<'a, T, F, Fut>(
    mut remaining: &'a [T],
    step: F,
) -> Result<Option<Waiting>, Error>
where
    F: Fn(&'a T) -> Fut,
    Fut: Future<Output = Result<Option<Waiting>, Error>>,
{
    let (mut waiting, mut size) = (None, 1);
    while !remaining.is_empty() {
        let (batch, rest) = remaining.split_at(size.min(remaining.len()));
        waiting = waiting.or(run_batch(batch, &step).await?);
        size = (2 * batch.len()).min(MAX_BATCH_SIZE);
        remaining = rest;
    }
    Ok(waiting)
}

/// Runs a step for every item of a list with gaps: `items` holds the others with their positions,
/// in ascending order. The batches are those of the whole list.
///
/// # Errors
///
/// All failures of the first failed batch.
pub(crate) async fn run_with_gaps<'a, T, F, Fut>(
    items: &'a [(usize, T)],
    step: F,
) -> Result<Option<Waiting>, Error>
where
    F: Fn(&'a (usize, T)) -> Fut,
    Fut: Future<Output = Result<Option<Waiting>, Error>>,
{
    let mut waiting = None;
    for batch in items.chunk_by(|(one, _), (other, _)| batch_of(*one) == batch_of(*other)) {
        waiting = waiting.or(run_batch(batch, &step).await?);
    }
    Ok(waiting)
}

/// Returns the number of the batch that contains this position of a list.
fn batch_of(position: usize) -> usize {
    let (mut batch, mut size, mut end) = (0, 1, 1);
    while size < MAX_BATCH_SIZE {
        if position < end {
            return batch;
        }
        batch += 1;
        size = (2 * size).min(MAX_BATCH_SIZE);
        end += size;
    }
    // The rest of the batches have the maximum size.
    batch + (position + MAX_BATCH_SIZE).saturating_sub(end) / MAX_BATCH_SIZE
}

/// Runs a step for every item in parallel, in no guaranteed order.
async fn run_batch<'a, T, F, Fut>(batch: &'a [T], step: &F) -> Result<Option<Waiting>, Error>
where
    F: Fn(&'a T) -> Fut,
    Fut: Future<Output = Result<Option<Waiting>, Error>>,
{
    consume_budget().await;
    // The last call is sent first, as by the reference: if the server fails one call, it is the
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
    Error::join(errors).map(|()| waiting)
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

    #[test]
    fn batches_with_gaps_are_those_of_the_whole_list() {
        let sizes = [1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 500, 89];
        let mut position = 0;
        for (batch, size) in sizes.into_iter().enumerate() {
            for _ in 0..size {
                assert_eq!(batch_of(position), batch, "{position}");
                position += 1;
            }
        }
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
                Ok(Some(Waiting::PodNotReady { pod: (*pod).into() }))
            };
            let waiting = run_for_all(&["a", "b", "c"], monotonic, step)
                .await
                .unwrap();
            assert_eq!(waiting, Some(Waiting::PodNotReady { pod: "a".into() }));
            assert_eq!(calls.into_inner(), expected);
        }
    }
}
