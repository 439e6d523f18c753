//! Syncs with long computations between two requests.

use std::future::poll_fn;
use std::pin::pin;

use statefulset_controller_util::stateful_set::StatefulSet;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Minimum size of a set's text for which comparing it and building its pods takes milliseconds.
const LARGE_TEXT_BYTES: usize = 64 * 1024;

/// True if a sync of this set may compute for long.
pub(crate) fn computes_for_long(set: &StatefulSet) -> bool {
    set.text_len() >= LARGE_TEXT_BYTES
}

/// Awaits a future whose polls take long. For each poll, the thread hands the runtime's other tasks
/// to another thread, so that probes get a response and the lease is renewed. A single-threaded
/// runtime has no other thread.
pub(crate) async fn poll_in_place<T>(future: impl Future<Output = T>) -> T {
    if Handle::current().runtime_flavor() != RuntimeFlavor::MultiThread {
        return future.await;
    }
    let mut future = pin!(future);
    poll_fn(|context| block_in_place(|| future.as_mut().poll(context))).await
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_run_while_one_computes() {
        let (sender, receiver) = mpsc::channel();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(poll_in_place(async move {
            begun.send(()).unwrap();
            receiver.recv_timeout(Duration::from_secs(60)).unwrap();
        }));
        tasks.spawn(async move {
            has_begun.await.unwrap();
            sender.send(()).unwrap();
        });
        assert_eq!(tasks.join_all().await.len(), 2);
    }

    #[tokio::test]
    async fn single_threaded_runtime_polls_in_place() {
        assert_eq!(poll_in_place(async { 7 }).await, 7);
    }
}
