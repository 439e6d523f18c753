//! Workers: sync the sets of the served namespaces, and no others.

use std::num::NonZeroUsize;
use std::sync::Arc;

use kube_apimachinery::object_key::ObjectKey;
use statefulset_client::error::Error as ApiError;
use statefulset_controller_util::error::Aggregate;
use statefulset_fence::Policy;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::super::worker::requeue;
use super::context::Context;
use crate::error::{Error, RunError};
use crate::tasks::join_all;

/// Running workers.
pub(super) struct Workers(JoinSet<()>);

/// Starts workers; they end after the queue is shut down.
pub(super) fn start(
    context: &Arc<Context>,
    workers: NonZeroUsize,
    stop: &CancellationToken,
) -> Workers {
    let mut tasks = JoinSet::new();
    for number in 0..workers.get() {
        let (context, stop) = (Arc::clone(context), stop.clone());
        let span = tracing::info_span!("worker", worker = number);
        tasks.spawn(async move { work(&context, &stop).await }.instrument(span));
    }
    Workers(tasks)
}

impl Workers {
    /// Waits until the running syncs have finished, or drops them.
    ///
    /// # Errors
    ///
    /// A worker panicked.
    pub(super) async fn ended(mut self, drops: bool) -> Result<(), RunError> {
        if drops {
            self.0.abort_all();
        }
        join_all(&mut self.0).await
    }
}

async fn work(context: &Context, stop: &CancellationToken) {
    let queue = &context.settings.queue;
    while let Some(key) = queue.get().await {
        if !stop.is_cancelled() {
            let span = tracing::info_span!("sync", stateful_set = %key);
            sync(context, &key).instrument(span).await;
        }
        queue.done(&key);
    }
}

/// Syncs a set if its namespace is served. A denial by the fence is no failure to back off from: the
/// namespace leaves, and syncs everything after a new proof.
async fn sync(context: &Context, key: &ObjectKey) {
    let queue = &context.settings.queue;
    let Some(served) = context.registry.get(key.namespace()) else {
        return queue.forget(key);
    };
    let _busy = served.busy.read().await;
    let syncing = served.syncer.sync_guarded(key);
    match served.stop.run_until_cancelled(syncing).await {
        None => queue.forget(key),
        Some(Err(error)) if is_denied(&error) => {
            tracing::debug!(%error, "the fence denies a write");
            queue.forget(key);
            served.denied.notify_one();
        }
        Some(synced) => requeue(queue, &served.syncer, key, synced),
    }
}

/// True if the mirror denied a write of this sync.
fn is_denied(error: &Error) -> bool {
    let mut is_denied = false;
    Aggregate::visit_causes(error, &mut |cause| {
        let error: Option<&ApiError> = cause.downcast_ref();
        is_denied |= error.is_some_and(|error| Policy::Mirror.denied(error));
    });
    is_denied
}
