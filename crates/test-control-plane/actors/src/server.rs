//! The actors' API server: the embedded one, or a real one through a copy of its objects.

use std::sync::Arc;

use http::Method;
use jiff::Timestamp;
use kube_apimachinery::time;
#[cfg(feature = "client")]
use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::kinds::Kind;
use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_server::server::ApiServer;
use kube_test_control_plane_store::store::{Compacted, LogEntry};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "client")]
use crate::mirror::Mirror;
use crate::no_answer::NoAnswer;

/// The API server of the actors.
#[derive(Clone, Debug)]
pub enum ActorServer {
    /// The embedded server, with direct reads from its store.
    Embedded(ApiServer),
    /// A real server, with reads from a copy.
    #[cfg(feature = "client")]
    Real(Arc<Mirror>),
}

impl ActorServer {
    /// Returns the newest known version of an object.
    pub(super) fn get(&self, key: &Key) -> Option<Arc<Object>> {
        match self {
            Self::Embedded(server) => server.store().get(key),
            #[cfg(feature = "client")]
            Self::Real(mirror) => mirror.log().get(key),
        }
    }

    /// Returns the newest versions of a kind's objects, in one namespace or in all (an empty name).
    pub(super) fn list(&self, storage: &str, namespace: &str) -> Vec<Arc<Object>> {
        match self {
            Self::Embedded(server) => server.store().list(storage, namespace).1,
            #[cfg(feature = "client")]
            Self::Real(mirror) => mirror.log().list(storage, namespace),
        }
    }

    /// Returns all objects with their position in the log.
    pub(super) fn all(&self) -> (u64, Vec<Arc<Object>>) {
        match self {
            Self::Embedded(server) => server.store().all(),
            #[cfg(feature = "client")]
            Self::Real(mirror) => mirror.log().all(),
        }
    }

    /// Returns the next events after a position in the log, and the position up to which they are
    /// complete.
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

    /// Subscribes to the log's last position.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        match self {
            Self::Embedded(server) => server.store().subscribe(),
            #[cfg(feature = "client")]
            Self::Real(mirror) => mirror.log().subscribe(),
        }
    }

    /// Returns the newest version of an object, or `None` if it does not exist. The embedded store
    /// is always current. The copy of a real server may lack an object, so the server is asked.
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

    /// Sends a request and returns the status code and body. The actors see the write once it
    /// returns.
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

    /// Finds the row of a kind in a body. The copy of a real server has no custom resources.
    pub(super) fn kind_of(&self, api_version: &str, kind: &str) -> Option<Arc<Kind>> {
        match self {
            Self::Embedded(server) => server.kind_of(api_version, kind),
            #[cfg(feature = "client")]
            Self::Real(_) => kinds::by_kind(api_version, kind).map(Arc::clone),
        }
    }

    /// Finds a row that stores objects under this storage name.
    pub(super) fn kind_stored_as(&self, storage: &str) -> Option<Arc<Kind>> {
        match self {
            Self::Embedded(server) => server.kind_stored_as(storage),
            #[cfg(feature = "client")]
            Self::Real(_) => kinds::by_storage(storage).map(Arc::clone),
        }
    }

    /// Returns one row of each custom resource.
    pub(super) fn custom_kinds(&self) -> Vec<Arc<Kind>> {
        match self {
            Self::Embedded(server) => server.stored_custom_kinds(),
            #[cfg(feature = "client")]
            Self::Real(_) => Vec::new(),
        }
    }

    /// Returns the seed of the actors' random draws.
    pub(super) fn seed(&self) -> u64 {
        match self {
            Self::Embedded(server) => server.config().seed,
            #[cfg(feature = "client")]
            Self::Real(_) => 0,
        }
    }

    /// Returns the current time.
    pub(super) fn now(&self) -> Timestamp {
        match self {
            Self::Embedded(server) => server.clock().now(),
            #[cfg(feature = "client")]
            Self::Real(mirror) => mirror.now(),
        }
    }

    /// Returns the current time in the API's format.
    pub(super) fn now_text(&self) -> String {
        time::format_seconds(self.now())
    }

    /// Cancelled when the actors stop.
    pub fn stopping(&self) -> CancellationToken {
        match self {
            Self::Embedded(server) => server.stopping(),
            #[cfg(feature = "client")]
            Self::Real(mirror) => mirror.stopping(),
        }
    }
}
