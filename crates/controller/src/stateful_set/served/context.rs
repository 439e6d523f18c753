//! Clients, settings and state that all served namespaces share.

use std::sync::Arc;
use std::time::Duration;

use kube_apimachinery::object_key::ObjectKey;
use statefulset_client::backoff::Jitter;
use statefulset_client::clock::Clock;
use statefulset_client::recorder::EventRecorder;
use statefulset_client::rest::RestClient;
use statefulset_client::workqueue::WorkQueue;
use statefulset_fence::NamespaceSelector;
use statefulset_opt_ins::SyncRules;
use tokio::sync::watch;

use super::fence_watch::Standing;
use super::registry::Registry;
use super::report::Report;
use super::watch_clients::WatchClients;
use crate::metrics::ControllerMetrics;

/// The dependencies and settings of every namespace's syncs.
pub(in crate::stateful_set) struct SyncSettings {
    pub(in crate::stateful_set) queue: WorkQueue<ObjectKey>,
    pub(in crate::stateful_set) recorder: Arc<dyn EventRecorder>,
    pub(in crate::stateful_set) clock: Arc<dyn Clock>,
    pub(in crate::stateful_set) jitter: Arc<dyn Jitter>,
    pub(in crate::stateful_set) rules: SyncRules,
    pub(in crate::stateful_set) metrics: ControllerMetrics,
    pub(in crate::stateful_set) resync_period: Option<Duration>,
    /// Maximum number of objects per page of a list.
    pub(in crate::stateful_set) page_size: u32,
    pub(in crate::stateful_set) seed: u64,
}

/// The fence as this program expects it, and whether it stands.
pub(super) struct Fence {
    pub(super) selector: NamespaceSelector,
    pub(super) standing: watch::Receiver<Standing>,
}

/// Clients, settings and state that all served namespaces share.
pub(super) struct Context {
    pub(super) clients: WatchClients,
    /// Writes, behind the fence of leader election; also tries the probes.
    pub(super) writes: RestClient,
    pub(super) fence: Fence,
    pub(super) registry: Registry,
    pub(super) report: Report,
    pub(super) settings: SyncSettings,
}
