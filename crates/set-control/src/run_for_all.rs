//! How a step is taken for every pod of a list: one after the other, or in growing batches.

use futures::future::join_all;
use tokio::task::coop::consume_budget;

use crate::error::Error;
use crate::outcome::Waiting;

/// The most pods that one batch has.
///
/// Upstream: `MaxBatchSize`.
const MAX_BATCH_SIZE: usize = 500;

/// Whether a sync goes on after a step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// It goes on.
    Continue,
    /// It ends here, and this is what it waits for.
    Exit(Waiting),
}

/// How the steps of a phase follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One after the other, up to the first that ends the sync or fails.
    Monotonic,
    /// In batches of 1, 2, 4, … at most [`MAX_BATCH_SIZE`]; all of a batch run at once, none ends
    /// the sync, and a failure ends it after its batch.
    Burst,
}

/// Takes a step for every item. In burst mode the first item that would have ended the sync is
/// told in `noted`.
///
/// # Errors
///
/// What failed; in burst mode all failures of the batch.
///
/// Upstream: `runForAll`, `slowStartBatch`.
pub(crate) async fn run_for_all<'a, T, F, Fut>(
    items: &'a [T],
    mode: Mode,
    noted: &mut Option<Waiting>,
    step: F,
) -> Result<Flow, Error>
where
    F: Fn(&'a T) -> Fut,
    Fut: Future<Output = Result<Flow, Error>>,
{
    match mode {
        Mode::Monotonic => {
            for item in items {
                // Other sets get their turn, however many pods there are.
                consume_budget().await;
                if let Flow::Exit(waiting) = step(item).await? {
                    return Ok(Flow::Exit(waiting));
                }
            }
        }
        Mode::Burst => {
            let mut remaining = items;
            let mut size = 1;
            while !remaining.is_empty() {
                consume_budget().await;
                let (batch, rest) = remaining.split_at(size.min(remaining.len()));
                run_batch(batch, noted, &step).await?;
                size = (2 * batch.len()).min(MAX_BATCH_SIZE);
                remaining = rest;
            }
        }
    }
    Ok(Flow::Continue)
}

async fn run_batch<'a, T, F, Fut>(
    batch: &'a [T],
    noted: &mut Option<Waiting>,
    step: &F,
) -> Result<(), Error>
where
    F: Fn(&'a T) -> Fut,
    Fut: Future<Output = Result<Flow, Error>>,
{
    let mut errors = Vec::new();
    // The calls run at once, in no order that anybody may rely on. The last begins, as with the
    // reference: where the server fails a single call, the same pod meets it.
    let (before, last) = batch.split_at(batch.len().saturating_sub(1));
    let mut results = join_all(last.iter().chain(before).map(step)).await;
    results.rotate_left(last.len());
    for result in results {
        match result {
            Ok(Flow::Exit(waiting)) => drop(noted.get_or_insert(waiting)),
            Ok(Flow::Continue) => {}
            Err(error) => errors.push(error),
        }
    }
    Error::join(errors)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test]
    async fn batches_double_up_to_the_cap() {
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
            Ok(Flow::Continue)
        };
        let flow = run_for_all(&items, Mode::Burst, &mut None, step)
            .await
            .unwrap();
        assert_eq!(flow, Flow::Continue);
        assert_eq!(
            running.into_inner().unwrap().1,
            [1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 500, 89]
        );
    }

    #[tokio::test]
    async fn other_tasks_get_turns_among_many_pods() {
        for mode in [Mode::Monotonic, Mode::Burst] {
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
            let step = async |_item: &()| Ok(Flow::Continue);
            run_for_all(&items, mode, &mut None, step).await.unwrap();
            assert!(turns.load(Ordering::Relaxed) > 0, "{mode:?}");
            others.shutdown().await;
        }
    }

    #[tokio::test]
    async fn in_order_the_first_exit_ends_it_and_in_bursts_none_does() {
        let exit = |pod: &str| Flow::Exit(Waiting::PodNotReady { pod: pod.into() });
        for (mode, expected) in [(Mode::Monotonic, exit("a")), (Mode::Burst, Flow::Continue)] {
            let calls = Mutex::new(0);
            let mut noted = None;
            let step = async |pod: &&str| {
                *calls.lock().unwrap() += 1;
                Ok(exit(pod))
            };
            let flow = run_for_all(&["a", "b", "c"], mode, &mut noted, step)
                .await
                .unwrap();
            assert_eq!(flow, expected);
            let (called, first) = if mode == Mode::Burst {
                (3, Some(Waiting::PodNotReady { pod: "a".into() }))
            } else {
                (1, None)
            };
            assert_eq!((calls.into_inner().unwrap(), noted), (called, first));
        }
    }
}
