//! The delivery of a controller's events.

use statefulset_client::recorder::EventSink;
use statefulset_client::rest::RestClient;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The receiver of events, and how it sends them.
pub(super) struct Events {
    pub(super) sink: EventSink,
    pub(super) client: RestClient,
    /// Seed of random delays and names.
    pub(super) seed: u64,
}

impl Events {
    /// Sends events in a task of its own, until the recorders are dropped or `stop` is cancelled.
    pub(super) fn send(self, stop: &CancellationToken) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        tasks.spawn(self.sink.run(self.client, self.seed, stop.clone()));
        tasks
    }
}
