//! The API server as its embedders see it.

pub mod restart;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request};
use jiff::SignedDuration;
use kube_test_control_plane_api::custom::DEFINITIONS;
use kube_test_control_plane_api::kinds::{self, Kind};
use kube_test_control_plane_api::normalize::OlderObject;
use kube_test_control_plane_api::object::{AsIs, StoreAsIsError};
use kube_test_control_plane_store::clock::Clock;
use kube_test_control_plane_store::store::Store;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::admission::{AdmissionHooks, WebhookServices};
use crate::audit::AuditLog;
use crate::auth::Identity;
use crate::config::{EmulatedVersion, ServerConfig, ServerGates, UnknownFields};
use crate::containers::Kubelets;
use crate::faults::Faults;
use crate::pipeline::{self, json};
use crate::reply::{BoxError, Reply};
use crate::state::{Behaviour, ServerState, now_text};
use crate::{access, definitions, handlers, tunnel};

pub use crate::reply::ConnectionDropped;
use restart::Restart;

/// The API server. Clones share their state.
#[derive(Clone, Debug)]
pub struct ApiServer(Arc<ServerState>);

impl ApiServer {
    /// Creates a server with an empty store.
    pub fn new(config: ServerConfig, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(ServerState::new(config, clock)))
    }

    /// Returns the store, for inspection and compaction.
    pub fn store(&self) -> &Store {
        &self.0.writes.store
    }

    /// Stores an object byte by byte, except for its `metadata.resourceVersion`, in place of an
    /// existing one with its name. Nothing is validated, defaulted or rejected. GET, LIST and WATCH
    /// return these bytes until the next write of the object, including invalid UTF-8, lone
    /// surrogates and any depth that Go can read. A list omits leading `kind` and `apiVersion`
    /// fields, as always.
    ///
    /// For controllers under test, which must handle any stored object.
    ///
    /// # Errors
    ///
    /// The text is not JSON, has no name, or is of a kind that the server doesn't store.
    pub fn store_as_is(&self, text: &[u8]) -> Result<(), StoreAsIsError> {
        let object = AsIs::read(text)?;
        self.0.writes.store.put_as_is(&object);
        if &*object.kind.storage == DEFINITIONS {
            definitions::settle_definitions(&self.0.writes, None);
        }
        Ok(())
    }

    /// Stores an object as an older server has left it, in place of an existing one with its name.
    /// It is read as from etcd, with today's defaults, but nothing is validated, dropped or
    /// rejected: the object may break today's rules and have fields whose gates are off. A missing
    /// uid, generation or creation time is filled in.
    ///
    /// # Errors
    ///
    /// The text is not JSON, has no name, is of a kind that the server doesn't store, or a field has
    /// a value that its type doesn't have.
    pub fn store_raw(&self, text: &[u8]) -> Result<(), StoreAsIsError> {
        let Behaviour {
            unknown_fields,
            version,
            gates,
        } = self.0.reads.behaviour();
        let mut object = OlderObject::read(text, version, gates, unknown_fields)?;
        let uid = self.0.writes.random.new_uid();
        object.identify(&uid, &now_text(&**self.clock()));
        let OlderObject { kind, key, draft } = object;
        self.0.writes.store.replace(kind, key, draft);
        if &*kind.storage == DEFINITIONS {
            definitions::settle_definitions(&self.0.writes, None);
        }
        Ok(())
    }

    /// Returns the clock of timestamps.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        self.0.clock()
    }

    /// Returns the configuration. Its policy for unknown fields, its version and its gates are the
    /// initial ones.
    pub fn config(&self) -> &ServerConfig {
        &self.0.config
    }

    /// Returns the policy for unknown fields.
    pub fn unknown_fields(&self) -> UnknownFields {
        self.0.reads.behaviour().unknown_fields
    }

    /// Changes the policy for unknown fields, as in an upgrade of the server. Stored objects stay
    /// unchanged.
    pub fn set_unknown_fields(&self, policy: UnknownFields) {
        self.0
            .change_behaviour(|behaviour| behaviour.unknown_fields = policy);
    }

    /// Returns the emulated version.
    pub fn emulated_version(&self) -> EmulatedVersion {
        self.0.reads.behaviour().version
    }

    /// Returns the feature gates.
    pub fn feature_gates(&self) -> ServerGates {
        self.0.reads.behaviour().gates
    }

    /// Changes the version and its gates, as in an upgrade or a rollback of the server. Stored
    /// objects stay unchanged; each loses the fields that the version lacks with its next write.
    pub fn set_emulated_version(&self, version: EmulatedVersion, gates: ServerGates) {
        self.0.change_behaviour(|behaviour| {
            behaviour.version = version;
            behaviour.gates = gates;
        });
    }

    /// Returns the audit log.
    pub fn audit(&self) -> &AuditLog {
        &self.0.audit
    }

    /// Returns the fault rules.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// Finds the row of a kind in a body, custom resources included.
    pub fn kind_of(&self, api_version: &str, kind: &str) -> Option<Arc<Kind>> {
        let built_in = kinds::by_kind(api_version, kind).map(Arc::clone);
        let custom = || self.0.reads.custom_kinds();
        built_in.or_else(|| custom().by_kind(api_version, kind).map(Arc::clone))
    }

    /// Finds a row that stores objects under this storage name, custom resources included.
    pub fn kind_stored_as(&self, storage: &str) -> Option<Arc<Kind>> {
        let built_in = kinds::by_storage(storage).map(Arc::clone);
        let custom = || self.0.reads.custom_kinds();
        built_in.or_else(|| custom().by_storage(storage).map(Arc::clone))
    }

    /// Returns all served rows: the built-in ones in the order of discovery, then those of custom
    /// resources.
    pub fn served_kinds(&self) -> Vec<Arc<Kind>> {
        self.0.reads.served_kinds()
    }

    /// Returns one row of each served custom resource.
    pub fn stored_custom_kinds(&self) -> Vec<Arc<Kind>> {
        let custom = self.0.reads.custom_kinds();
        custom.stored().map(Arc::clone).collect()
    }

    /// Returns the admission hooks.
    pub fn admission(&self) -> &AdmissionHooks {
        &self.0.writes.admission
    }

    /// Returns the services behind which webhooks run.
    pub fn webhook_services(&self) -> &WebhookServices {
        self.0.reads.webhooks.client.services()
    }

    /// Reaches the containers of the nodes through these kubelets from now on. Later calls have no
    /// effect. For the crates of the control plane.
    #[doc(hidden)]
    pub fn serve_containers(&self, kubelets: Arc<dyn Kubelets>) {
        self.0.streams.serve_containers(kubelets);
    }

    /// Restarts the server: all connections break, requests in flight are lost, objects are kept.
    pub fn restart(&self, restart: Restart) {
        if !restart.keep_events {
            self.0.forget_events();
        }
        let outage = self.faults().outage();
        if restart.down_for.is_zero() {
            outage.break_connections();
        } else {
            outage.begin_for(restart.down_for);
        }
    }

    /// Sets the offset of the server's clock from its original one; negative for a slow clock.
    pub fn set_clock_ahead(&self, ahead: SignedDuration) {
        self.0.skew.set_ahead(ahead);
    }

    /// Ends all watches; requests still get responses.
    pub fn stop(&self) {
        self.0.reads.stopping.cancel();
    }

    /// Cancelled when the server stops.
    pub fn stopping(&self) -> CancellationToken {
        self.0.reads.stopping.clone()
    }

    /// Issues a bearer token for a user. It is valid while the server runs.
    pub fn issue_token(&self, identity: &Identity) -> String {
        access::issue_token(&self.0.access, identity)
    }

    /// Sets the certificates that pods with a service account check the server by. Namespaces that
    /// exist already have none.
    pub fn set_root_ca(&self, pem: &str) {
        if let Some(root_ca) = &self.0.writes.service_accounts {
            root_ca.get_or_init(|| pem.to_owned());
        }
    }

    /// Stores the missing default roles and bindings.
    pub fn install_bootstrap_policy(&self) {
        access::install_bootstrap_policy(&self.0.writes);
    }

    /// Responds to a request.
    ///
    /// # Errors
    ///
    /// A fault drops or refuses the connection, or upstream would panic on the request. All
    /// other failures are responses.
    pub async fn serve<B>(&self, request: Request<B>) -> Result<Reply, ConnectionDropped>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        pipeline::serve(&self.0, request).await
    }

    /// Responds to a request to the port of the kubelets.
    pub(crate) async fn serve_nodes<B>(&self, request: Request<B>) -> Reply
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        handlers::serve_nodes(&self.0.streams, request).await
    }

    /// Sends a request as the administrator with a JSON body, or none if it is null; patches are
    /// strategic. Returns the status code and body: 0 and null if a fault dropped the connection.
    pub async fn call_json(
        &self,
        method: Method,
        path: &str,
        user_agent: &str,
        body: &Value,
    ) -> (u16, Value) {
        let target = (json::content_type(&method), path);
        json::send(&self.0, None, method, target, user_agent, body).await
    }

    /// Like [`call_json`](Self::call_json), as another user.
    pub async fn call_json_as(
        &self,
        identity: &Identity,
        method: Method,
        path: &str,
        user_agent: &str,
        body: &Value,
    ) -> (u16, Value) {
        let (identity, target) = (Some(identity.clone()), (json::content_type(&method), path));
        json::send(&self.0, identity, method, target, user_agent, body).await
    }

    /// Sends a server-side apply as the administrator. Returns the status code and body: 0 and null
    /// if a fault dropped the connection.
    pub async fn apply_json(&self, path: &str, user_agent: &str, body: &Value) -> (u16, Value) {
        let target = (json::APPLY, path);
        json::send(&self.0, None, Method::PATCH, target, user_agent, body).await
    }
}

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Reply;
    type Error = ConnectionDropped;
    type Future = Pin<Box<dyn Future<Output = Result<Reply, ConnectionDropped>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move {
            if tunnel::is_wanted(&request) {
                return tunnel::send(server.0, request).await;
            }
            server.serve(request).await
        })
    }
}
