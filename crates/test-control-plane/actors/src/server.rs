//! The API server as actors see it: the embedded one, or a real one through a copy of its objects.

use std::sync::Arc;

use http::Method;
use jiff::Timestamp;
use kube_apimachinery::time;
use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_server::server::ApiServer;
use kube_test_control_plane_store::store::{Compacted, LogEntry};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "client")]
use crate::mirror::Mirror;
use crate::no_answer::NoAnswer;

/// The API server that actors work for.
#[derive(Clone, Debug)]
pub enum ActorServer {
    /// The embedded one, whose store they read.
    Embedded(ApiServer),
    /// A real one, of whose objects they keep a copy.
    #[cfg(feature = "client")]
    Real(Arc<Mirror>),
}

impl ActorServer {
    /// The newest version of an object that is known.
    pub(super) fn get(&self, key: &Key) -> Option<Arc<Object>> {
        match self {
            Self::Embedded(server) => server.store().get(key),
            #[cfg(feature = "client")]
            Self::Real(mirror) => mirror.log().get(key),
        }
    }

    /// The newest versions of a kind's objects, of one namespace or of all (an empty one).
    pub(super) fn list(&self, storage: &'static str, namespace: &str) -> Vec<Arc<Object>> {
        match self {
            Self::Embedded(server) => server.store().list(storage, namespace).1,
            #[cfg(feature = "client")]
            Self::Real(mirror) => mirror.log().list(storage, namespace),
        }
    }

    /// Everything, with the position in the log that it was read at.
    pub(super) fn all(&self) -> (u64, Vec<Arc<Object>>) {
        match self {
            Self::Embedded(server) => server.store().all(),
            #[cfg(feature = "client")]
            Self::Real(mirror) => mirror.log().all(),
        }
    }

    /// The next events after a position in the log, with the position up to which nothing is
    /// missing.
    pub(super) fn events_after(
        &self,
        after: u64,
        max: usize,
    ) -> Result<(u64, Vec<LogEntry>), Compacted> {
        match self {
            Self::Embedded(server) => server.store().events_after(after, max),
            #[cfg(feature = "client")]
            Self::Real(mirror) => mirror.log().events_after(after, max),
        }
    }

    /// Tells how far the log goes.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        match self {
            Self::Embedded(server) => server.store().subscribe(),
            #[cfg(feature = "client")]
            Self::Real(mirror) => mirror.log().subscribe(),
        }
    }

    /// Whether an object exists: the newest version of it, or none. The embedded store is never
    /// behind; of a real server's objects one may just not be known yet, so it is asked.
    ///
    /// # Errors
    ///
    /// A real server doesn't answer.
    pub(super) async fn look_up(&self, key: &Key) -> Result<Option<Arc<Object>>, NoAnswer> {
        match self {
            Self::Embedded(server) => Ok(server.store().get(key)),
            #[cfg(feature = "client")]
            Self::Real(mirror) => mirror.look_up(key).await,
        }
    }

    /// Sends a request; the code of the answer and its body. Once it returns, the write is part of
    /// what the actors know.
    pub(super) async fn call_json(
        &self,
        method: Method,
        path: &str,
        agent: &str,
        body: &Value,
    ) -> (u16, Value) {
        match self {
            Self::Embedded(server) => server.call_json(method, path, agent, body).await,
            #[cfg(feature = "client")]
            Self::Real(mirror) => mirror.call_json(method, path, agent, body).await,
        }
    }

    /// The seed of whatever actors draw.
    pub(super) fn seed(&self) -> u64 {
        match self {
            Self::Embedded(server) => server.config().seed,
            #[cfg(feature = "client")]
            Self::Real(_) => 0,
        }
    }

    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        match self {
            Self::Embedded(server) => server.clock().now(),
            #[cfg(feature = "client")]
            Self::Real(mirror) => mirror.now(),
        }
    }

    /// The time as the API prints it.
    pub(super) fn now_text(&self) -> String {
        time::format_seconds(self.now())
    }

    /// Ends the actors.
    pub fn stopping(&self) -> CancellationToken {
        match self {
            Self::Embedded(server) => server.stopping(),
            #[cfg(feature = "client")]
            Self::Real(mirror) => mirror.stopping(),
        }
    }
}
