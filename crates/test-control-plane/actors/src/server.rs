//! The actors' API server: the embedded one, or a real one through a copy of its objects.

use std::net::Ipv4Addr;
use std::sync::Arc;

use http::Method;
use jiff::Timestamp;
use kube_apimachinery::time;
#[cfg(feature = "client")]
use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::kinds::Kind;
use kube_test_control_plane_api::object::{Key, Object};
#[cfg(feature = "client")]
use kube_test_control_plane_server::config::{EmulatedVersion, ServiceRange};
use kube_test_control_plane_server::containers::Kubelets;
use kube_test_control_plane_server::server::ApiServer;
use kube_test_control_plane_store::store::Store;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "client")]
use crate::mirror::Mirror;

/// A real server's response does not prove whether an object exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inconclusive;

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
    /// Returns the objects: those of the embedded server, or the copy of a real server's.
    pub(super) fn store(&self) -> &Store {
        match self {
            Self::Embedded(server) => server.store(),
            #[cfg(feature = "client")]
            Self::Real(mirror) => mirror.store(),
        }
    }

    /// Returns the newest version of an object, or `None` if it does not exist. The embedded store
    /// is always current. The copy of a real server may lack an object, so the server is asked.
    ///
    /// # Errors
    ///
    /// A real server responds with neither 200 nor 404, or not at all.
    #[cfg_attr(
        not(feature = "client"),
        expect(clippy::unused_async, reason = "the embedded server answers at once")
    )]
    pub(super) async fn look_up(&self, key: &Key) -> Result<Option<Arc<Object>>, Inconclusive> {
        match self {
            Self::Embedded(server) => Ok(server.store().get(key)),
            #[cfg(feature = "client")]
            Self::Real(mirror) => mirror.look_up(key).await.map_err(|_| Inconclusive),
        }
    }

    /// Returns the embedded server, if it is one.
    #[cfg(feature = "cel")]
    pub(super) fn embedded(&self) -> Option<&ApiServer> {
        match self {
            Self::Embedded(server) => Some(server),
            #[cfg(feature = "client")]
            Self::Real(_) => None,
        }
    }

    /// Sends a request and returns the status code and body. Actors on the embedded server see the
    /// write once it returns; on a real server, see `Mirror::call_json`.
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

    /// Makes the embedded server reach containers through these kubelets; a real server looks for
    /// kubelets on their ports.
    pub(super) fn serve_containers(&self, kubelets: impl Kubelets + 'static) {
        match self {
            Self::Embedded(server) => server.serve_containers(Arc::new(kubelets)),
            #[cfg(feature = "client")]
            Self::Real(_) => {}
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

    /// Returns the full version of kubelets: that of the embedded server, or upstream's.
    pub(super) fn kubelet_version(&self) -> &'static str {
        let version = match self {
            Self::Embedded(server) => server.emulated_version(),
            #[cfg(feature = "client")]
            Self::Real(_) => EmulatedVersion::default(),
        };
        version.git_version()
    }

    /// Returns the address of the API server's service: that of the embedded server, or of one with
    /// the same settings.
    pub(super) fn service_host(&self) -> Ipv4Addr {
        let range = match self {
            Self::Embedded(server) => server.config().service_cluster_ip_range,
            #[cfg(feature = "client")]
            Self::Real(_) => ServiceRange::default(),
        };
        range.first()
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
