//! State for connections to containers: the kubelets, and the tasks of taken-over connections.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::task::JoinSet;

use super::access::Access;
use super::reads::Reads;
use crate::containers::Kubelets;
use crate::faults::Faults;

/// The ways to the containers of the nodes.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) reads: Arc<Reads>,
    pub(crate) access: Arc<Access>,
    pub(crate) faults: Faults,
    pub(super) kubelets: OnceLock<Arc<dyn Kubelets>>,
    /// The work of connections that clients have taken over.
    pub(super) connections: Mutex<JoinSet<()>>,
}

impl Streams {
    /// Reaches the containers through these kubelets from now on. Later calls have no effect.
    pub(crate) fn serve_containers(&self, kubelets: Arc<dyn Kubelets>) {
        let _ = self.kubelets.set(kubelets);
    }

    /// Returns the kubelets of the nodes, if any run.
    pub(crate) fn kubelets(&self) -> Option<&Arc<dyn Kubelets>> {
        self.kubelets.get()
    }

    /// Runs the work of a connection until it ends.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let connections = self.connections.lock();
        let mut connections = connections.unwrap_or_else(PoisonError::into_inner);
        while connections.try_join_next().is_some() {}
        connections.spawn(work);
    }
}
