//! A copy of a real API server's objects, kept up to date by watches, so that actors run on it as
//! on the embedded server.
//!
//! On a real server, a write's watch event may arrive after its response. So a successful request
//! waits up to `ECHO_MAX` until the copy contains its write; after that, the actor may read its own
//! write late.

mod follow;
mod objects;
mod scope;

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{Method, Request};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use kube_test_control_plane_api::kinds::{self, KINDS};
use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_server::resource_path::key_of;
use kube_test_control_plane_store::clock::Clock;
use kube_test_control_plane_store::store::Store;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use follow::Replica;
use objects::{is_followed, made, object};
pub use scope::{Namespaces, Scope};

/// Limit of the wait for a write to reach the copy. It normally takes milliseconds; a write outside
/// the mirrored scope never arrives.
const ECHO_MAX: Duration = Duration::from_secs(1);

/// Limit of the events kept for slow actors.
const LOG_WINDOW: usize = 20_000;

/// A copy of a real API server's objects.
pub struct Mirror {
    replica: Arc<Replica>,
    clock: Arc<dyn Clock>,
    stopping: CancellationToken,
}

impl std::fmt::Debug for Mirror {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The client has no `Debug`, and there are too many objects.
        f.debug_struct("Mirror")
            .field("scope", &self.replica.scope)
            .finish_non_exhaustive()
    }
}

impl Mirror {
    /// Copies the existing objects and starts to follow changes.
    ///
    /// # Errors
    ///
    /// The server fails to list its objects.
    pub async fn start(
        client: Client,
        clock: Arc<dyn Clock>,
        scope: Scope,
        tasks: &mut JoinSet<()>,
    ) -> kube::Result<Arc<Self>> {
        let replica = Arc::new(Replica {
            client,
            store: Store::new(LOG_WINDOW),
            scope,
        });
        let stopping = CancellationToken::new();
        for kind in KINDS.iter().filter(|kind| is_followed(kind)) {
            // Servers of another version may lack some kinds.
            if let Some(version) = replica.list(kind).await? {
                tasks.spawn(follow::follow(
                    Arc::clone(&replica),
                    stopping.clone(),
                    Arc::clone(kind),
                    version,
                ));
            }
        }
        Ok(Arc::new(Self {
            replica,
            clock,
            stopping,
        }))
    }

    /// Returns the copy. Its revisions count the events in the order of arrival: a real server's
    /// versions increase across all kinds, but the watches of two kinds deliver them out of order.
    pub(super) fn store(&self) -> &Store {
        &self.replica.store
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Cancelled when the watches end.
    pub fn stopping(&self) -> CancellationToken {
        self.stopping.clone()
    }

    /// Reads an object from the server.
    ///
    /// # Errors
    ///
    /// The code of a response that does not prove whether the object exists.
    pub(super) async fn look_up(&self, key: &Key) -> Result<Option<Arc<Object>>, u16> {
        let Some(kind) = kinds::by_storage(&key.storage) else {
            return Ok(None);
        };
        let path = kind.object_path(&key.namespace, &key.name);
        let agent = kube_test_control_plane_server::faults::ACTOR_AGENT_PREFIX;
        match self.send(Method::GET, &path, agent, &Value::Null).await {
            (200, value) => Ok(object(kind, value).map(Arc::new)),
            (404, _) => Ok(None),
            (code, _) => Err(code),
        }
    }

    /// Sends a request, waits up to `ECHO_MAX` for its write to reach the copy, and returns the
    /// status code and body.
    pub(super) async fn call_json(
        &self,
        method: Method,
        path: &str,
        agent: &str,
        body: &Value,
    ) -> (u16, Value) {
        let target = key_of(path);
        let before = target.as_ref().and_then(|key| self.version(key));
        let (code, answer) = self.send(method, path, agent, body).await;
        if (200..300).contains(&code) {
            self.await_echo(target, before, &answer).await;
        }
        (code, answer)
    }

    fn version(&self, key: &Key) -> Option<u64> {
        self.replica
            .store
            .get(key)
            .map(|object| object.resource_version)
    }

    async fn await_echo(&self, target: Option<Key>, before: Option<u64>, answer: &Value) {
        let made = made(answer);
        let Some(key) = made.as_ref().map(|(key, _)| key.clone()).or(target) else {
            return;
        };
        let came_back = || match (self.version(&key), &made) {
            (Some(now), Some((_, wanted))) => now >= *wanted,
            (now, None) => now != before,
            (None, Some(_)) => before.is_some(),
        };
        let mut moved = self.replica.store.subscribe();
        // A write outside the mirrored scope never arrives.
        let _ = timeout(ECHO_MAX, moved.wait_for(|_| came_back())).await;
    }

    async fn send(&self, method: Method, path: &str, agent: &str, body: &Value) -> (u16, Value) {
        let content_type = if method == Method::PATCH {
            "application/strategic-merge-patch+json"
        } else {
            "application/json"
        };
        let bytes = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(USER_AGENT, agent)
            .header(CONTENT_TYPE, content_type)
            .body(Body::from(bytes));
        let Ok(request) = request else {
            return (400, Value::Null);
        };
        let Ok(response) = self.replica.client.send(request).await else {
            return (0, Value::Null);
        };
        let code = response.status().as_u16();
        match response.into_body().collect_bytes().await {
            Ok(bytes) => (code, serde_json::from_slice(&bytes).unwrap_or_default()),
            Err(_) => (0, Value::Null),
        }
    }
}
