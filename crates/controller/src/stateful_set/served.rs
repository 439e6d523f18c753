//! The controller of single namespaces behind the fence, which come and go while it runs.
//!
//! ```text
//! labels of namespaces ──> label watch ──┐
//! policies, bindings ────> fence watch ──┤
//!                                        v
//!                      namespace: prove, then fill caches and join the registry
//!                                        │  one for each namespace
//!                                        v
//!                      workers: take keys of registered namespaces alone
//! ```
//!
//! A namespace leaves the registry, and its running syncs are dropped, as soon as its label goes, an
//! object of the fence changes, the fence denies a write, or another controller's write shows. It
//! returns after a new proof, with new caches.

mod context;
mod fence_watch;
mod identity;
mod label_watch;
mod namespace;
mod own_writes;
mod proof;
mod registry;
mod report;
mod suspects;
mod watch_clients;
mod workers;

use std::num::NonZeroUsize;
use std::sync::Arc;

use statefulset_client::rest::RestClient;
use statefulset_fence::{FencePolicies, FenceSettings, NamespaceSelector};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::error::RunError;
use crate::tasks::join_all;
pub(super) use context::SyncSettings;
use context::{Context, Fence};
use fence_watch::FenceWatch;
use label_watch::LabelWatch;
use registry::Registry;
use report::Report;
pub(super) use watch_clients::{NewClient, WatchClients};

/// A controller for the namespaces with a label.
pub(super) struct ServedWork {
    pub(super) selector: NamespaceSelector,
    pub(super) clients: WatchClients,
    pub(super) writes: RestClient,
    pub(super) settings: SyncSettings,
    pub(super) concurrent_syncs: NonZeroUsize,
    /// Becomes true when the namespaces and the fence are known.
    pub(super) ready: watch::Sender<bool>,
}

impl ServedWork {
    pub(super) async fn run(self, stop: &CancellationToken) -> Result<(), RunError> {
        let Some(user) = stop.run_until_cancelled(identity::user(&self.writes)).await else {
            return Ok(());
        };
        let fence = FenceSettings::default()
            .selector(self.selector.clone())
            .user(user);
        let policies = FencePolicies::new(&fence)?;
        let control = self.clients.take()?;
        let seed = self.settings.seed;
        let fence_watch = FenceWatch::new(&control.client, policies, seed);
        let mut label_watch = LabelWatch::new(&control.client, &fence.selector, seed);
        let known = [fence_watch.has_synced(), label_watch.has_synced()];
        let standing = fence_watch.standing();
        let context = Arc::new(Context {
            clients: self.clients,
            writes: self.writes,
            fence: Fence {
                selector: fence.selector,
                standing,
            },
            registry: Registry::default(),
            report: Report::new(
                Arc::clone(&self.settings.recorder),
                Arc::clone(&self.settings.metrics.fence),
            ),
            settings: self.settings,
        });

        // Everything that the workers need ends after them.
        let stop_watches = CancellationToken::new();
        let mut watches = JoinSet::new();
        fence_watch.start(&mut watches, &stop_watches);
        label_watch.start(&mut watches, &stop_watches);
        let queue = context.settings.queue.clone();
        watches.spawn(async move { queue.report_unfinished().await });
        let workers = workers::start(&context, self.concurrent_syncs, stop);
        let mut namespaces = JoinSet::new();
        let ready = self.ready;
        let result = {
            let serving = async {
                for mut known in known {
                    if known.wait_for(|known| *known).await.is_err() {
                        return std::future::pending().await;
                    }
                }
                ready.send_replace(true);
                tracing::info!(
                    namespaces = %context.fence.selector,
                    workers = self.concurrent_syncs,
                    "ready: serving the namespaces with the label"
                );
                namespace::run_all(&context, &mut label_watch, &mut namespaces, &stop_watches).await
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => Ok(()),
                result = serving => result,
                result = join_all(&mut watches) => result,
            }
        };
        context.settings.queue.shut_down();
        let worked = workers.ended(result.is_err()).await;
        stop_watches.cancel();
        let left = join_all(&mut namespaces).await;
        watches.abort_all();
        let watched = join_all(&mut watches).await;
        drop(control);
        result.and(worked).and(left).and(watched)
    }
}
