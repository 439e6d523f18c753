//! The embedded control plane for tests and demos.

mod access;
#[cfg(feature = "client")]
mod actor;
mod apply;
mod start;

use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

pub use crate::manifests::{DocumentError, ManifestError};
pub use access::AccessError;
#[cfg(feature = "client")]
pub use actor::{ActorContext, ForeignActor};
pub use start::StartError;
use start::{Definitions, Endpoint, Parts, Settings};

use kube_test_control_plane_actors::{
    ActorServer, ActorsConfig, Controller, Invariants, KubeletConfig, Leases, Nodes, Pods,
    SchedulerConfig,
};
use kube_test_control_plane_api::object::StoreAsIsError;
use kube_test_control_plane_server::admission::WebhookHandler;
use kube_test_control_plane_server::auth::{Authorization, Identity, Tokens};
use kube_test_control_plane_server::certificates::{
    CertificateError, ClientAuthorities, ServingCertificate,
};
use kube_test_control_plane_server::config::{
    EmulatedVersion, ServerConfig, ServerGates, ServiceRange, UnknownFields,
};
use kube_test_control_plane_server::in_process::ServiceAs;
use kube_test_control_plane_server::server::ApiServer;
use kube_test_control_plane_store::clock::Clock;

use crate::kubeconfig::{self, Credential, WriteKubeconfigError};
use crate::manifests;

/// The user agent of the control plane's own requests.
const AGENT: &str = "test-control-plane/access";

/// The time that the tasks get to end when stopping.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// A running control plane. Dropping it stops its tasks.
#[derive(Debug)]
pub struct TestControlPlane(Parts);

impl TestControlPlane {
    /// Returns a builder for a control plane. By default it has no actors and no port.
    pub fn builder() -> TestControlPlaneBuilder {
        TestControlPlaneBuilder::default()
    }

    /// Returns the API server: a tower service with store, audit log and fault rules.
    pub fn server(&self) -> &ApiServer {
        &self.0.server
    }

    /// Returns the API server as a service for any client.
    pub fn service(&self) -> ApiServer {
        self.0.server.clone()
    }

    /// Stores an object as an older server has left it, see [`ApiServer::store_raw`]. Controllers
    /// and updates must handle such objects, which break today's rules or have fields whose feature
    /// gates are off.
    ///
    /// # Errors
    ///
    /// Those of [`ApiServer::store_raw`].
    pub fn store_raw(&self, object: &Value) -> Result<(), StoreAsIsError> {
        self.0.server.store_raw(object.to_string().as_bytes())
    }

    /// Acts on nodes: disconnects, reconnects and taints them.
    pub fn nodes(&self) -> Nodes<'_> {
        Nodes::new(&ActorServer::Embedded(self.service()), &self.0.actors)
    }

    /// Acts on pods: makes them crash, end or change their behaviour.
    pub fn pods(&self) -> Pods<'_> {
        Pods::new(&ActorServer::Embedded(self.service()), &self.0.actors)
    }

    /// Acts on leases: takes them from their holders.
    pub fn leases(&self) -> Leases {
        Leases::new(&ActorServer::Embedded(self.service()))
    }

    /// Returns the invariant violations so far.
    pub fn invariants(&self) -> &Invariants {
        &self.0.actors.invariants
    }

    /// Returns a client without sockets, in the namespace `default`.
    #[cfg(feature = "client")]
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// Returns the URL of the port, or `None` if there is none.
    pub fn url(&self) -> Option<String> {
        let address = self.0.endpoint.as_ref()?.address;
        Some(format!("https://{address}"))
    }

    /// Returns the URL of the kubelets' port, or `None` if there is none.
    pub fn kubelet_url(&self) -> Option<String> {
        let address = self.0.kubelets?;
        Some(format!("https://{address}"))
    }

    /// Stops watches, connections and actors and waits for them.
    ///
    /// # Panics
    ///
    /// Panics if an actor or a connection has panicked.
    pub async fn stop(mut self) {
        self.0.server.stop();
        let ended = async {
            while let Some(ended) = self.0.tasks.join_next().await {
                if let Err(err) = ended
                    && let Ok(panic) = err.try_into_panic()
                {
                    resume_unwind(panic);
                }
            }
        };
        if tokio::time::timeout(STOP_TIMEOUT, ended).await.is_err() {
            tracing::warn!("aborting tasks that did not stop in time");
        }
        self.0.tasks.shutdown().await;
    }

    /// Returns the API server as a service that sends requests as `identity`, with the permissions
    /// of its roles. Use it to run a whole test with only the role that a program ships with.
    pub fn service_as(&self, identity: Identity) -> ServiceAs {
        ServiceAs::new(self.service(), identity)
    }

    /// As [`client`](Self::client), for another user.
    #[cfg(feature = "client")]
    pub fn client_as(&self, identity: Identity) -> kube::Client {
        kube::Client::new(self.service_as(identity), "default")
    }

    /// Returns the administrator's kubeconfig; `None` if there is no port.
    pub fn kubeconfig(&self) -> Option<Value> {
        let Endpoint { tls, .. } = self.0.endpoint.as_deref()?;
        let credential = Credential::Certificate(&tls.admin);
        let url = self.url()?;
        Some(kubeconfig::kubeconfig(
            &url,
            &tls.ca_pem,
            "admin",
            credential,
        ))
    }

    /// Returns a user's kubeconfig with a client certificate. A user with several groups or with
    /// extra values, such as a service account, gets a token instead, because a certificate can't
    /// carry them.
    ///
    /// # Errors
    ///
    /// There is no port, or generating the certificate failed.
    pub fn kubeconfig_for(&self, identity: &Identity) -> Result<Value, AccessError> {
        let Endpoint { tls, .. } = self.0.endpoint.as_deref().ok_or(AccessError::NoPort)?;
        let url = self.url().ok_or(AccessError::NoPort)?;
        let user = &identity.name;
        match tls.client(identity) {
            Ok(certificate) => {
                let credential = Credential::Certificate(&certificate);
                Ok(kubeconfig::kubeconfig(&url, &tls.ca_pem, user, credential))
            }
            Err(CertificateError::TooMuch(_)) => {
                let token = self.issue_token(identity);
                let credential = Credential::Token(&token);
                Ok(kubeconfig::kubeconfig(&url, &tls.ca_pem, user, credential))
            }
            Err(err) => Err(err.into()),
        }
    }

    /// Returns a kubeconfig with a bearer token, either from [`issue_token`](Self::issue_token) or
    /// [`service_account_token`](Self::service_account_token), or from the tokens configured at the
    /// start.
    ///
    /// # Errors
    ///
    /// There is no port.
    pub fn kubeconfig_with_token(&self, user: &str, token: &str) -> Result<Value, AccessError> {
        let Endpoint { tls, .. } = self.0.endpoint.as_deref().ok_or(AccessError::NoPort)?;
        let url = self.url().ok_or(AccessError::NoPort)?;
        let credential = Credential::Token(token);
        Ok(kubeconfig::kubeconfig(&url, &tls.ca_pem, user, credential))
    }

    /// Issues a bearer token for a user, valid until the control plane stops.
    pub fn issue_token(&self, identity: &Identity) -> String {
        self.0.server.issue_token(identity)
    }

    /// Requests a token of an existing service account, as `kubectl create token` does. It is valid
    /// for an hour.
    ///
    /// # Errors
    ///
    /// The service account does not exist.
    pub async fn service_account_token(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<String, AccessError> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let body = json!({"spec": {}});
        let (_, answer) = self
            .0
            .server
            .call_json(Method::POST, &path, AGENT, &body)
            .await;
        match answer.pointer("/status/token").and_then(Value::as_str) {
            Some(token) => Ok(token.to_owned()),
            None => Err(AccessError::Token {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                message: answer["message"].as_str().unwrap_or_default().to_owned(),
            }),
        }
    }

    /// Writes the administrator's kubeconfig to a file atomically; does nothing without a port.
    ///
    /// # Errors
    ///
    /// The file can't be written.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<(), WriteKubeconfigError> {
        match self.kubeconfig() {
            Some(config) => kubeconfig::write_atomically(path, &format!("{config:#}\n")),
            None => Ok(()),
        }
    }

    /// Writes a user's kubeconfig to a file atomically: see
    /// [`kubeconfig_for`](Self::kubeconfig_for).
    ///
    /// # Errors
    ///
    /// There is no port, generating the certificate failed, or the file can't be written.
    pub fn write_kubeconfig_for(
        &self,
        identity: &Identity,
        path: &Path,
    ) -> Result<(), AccessError> {
        let config = self.kubeconfig_for(identity)?;
        kubeconfig::write_atomically(path, &format!("{config:#}\n"))?;
        Ok(())
    }

    /// Applies the objects of a YAML or JSON file, or of all such files of a folder, as
    /// `kubectl apply --server-side --force-conflicts` does: definitions first, then namespaces,
    /// then the others in the order of their files. An object without a namespace goes to
    /// `default`.
    ///
    /// # Errors
    ///
    /// A file can't be read, a document is no object, or the server refuses one. The objects before
    /// it are applied.
    pub async fn apply(&self, path: impl AsRef<Path>) -> Result<(), ManifestError> {
        apply::apply_all(self.server(), manifests::read(path.as_ref())?).await
    }
}

impl Drop for TestControlPlane {
    fn drop(&mut self) {
        self.0.server.stop();
    }
}

/// Builds a [`TestControlPlane`].
#[derive(Clone, Debug, Default)]
pub struct TestControlPlaneBuilder(Settings);

impl TestControlPlaneBuilder {
    /// Sets the server's whole configuration.
    #[must_use]
    pub fn server_config(mut self, config: ServerConfig) -> Self {
        self.0.config = config;
        self
    }

    /// Sets the version that the server behaves like, and the defaults of its gates.
    #[must_use]
    pub fn emulated_version(mut self, version: EmulatedVersion) -> Self {
        self.0.config.emulated_version = version;
        self.0.config.feature_gates = ServerGates::at(version);
        self
    }

    /// Sets the treatment of fields outside the schema of the emulated version: prune them, as
    /// upstream does, or keep them.
    #[must_use]
    pub fn unknown_fields(mut self, unknown_fields: UnknownFields) -> Self {
        self.0.config.unknown_fields = unknown_fields;
        self
    }

    /// Sets the feature gates.
    #[must_use]
    pub fn feature_gates(mut self, gates: ServerGates) -> Self {
        self.0.config.feature_gates = gates;
        self
    }

    /// Sets the seed of uids and generated names.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.0.config.seed = seed;
        self
    }

    /// Sets the network from which services get their addresses.
    #[must_use]
    pub fn service_cluster_ip_range(mut self, range: ServiceRange) -> Self {
        self.0.config.service_cluster_ip_range = range;
        self
    }

    /// Admits pods by their service account, as kube-apiserver does: the account must exist, and
    /// containers mount its token. Namespaces get a `default` account, and the certificates of the
    /// server in the config map `kube-root-ca.crt`. By default, pods stay as they are.
    #[must_use]
    pub fn service_account_admission(mut self) -> Self {
        self.0.config.service_account_admission = true;
        self
    }

    /// Sets the static bearer tokens.
    #[must_use]
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.0.config.tokens = tokens;
        self
    }

    /// Sets the authorizer; by default roles and bindings decide.
    #[must_use]
    pub fn authorization(mut self, authorization: impl Into<Authorization>) -> Self {
        self.0.config.authorization = authorization.into();
        self
    }

    /// Sets the actors to run.
    #[must_use]
    pub fn actors(mut self, actors: ActorsConfig) -> Self {
        self.0.actors = actors;
        self
    }

    /// Changes the configuration of the actors.
    #[must_use]
    pub fn configure_actors(mut self, change: impl FnOnce(&mut ActorsConfig)) -> Self {
        change(&mut self.0.actors);
        self
    }

    /// Runs all actors, with defaults for those not configured yet. Pods become ready immediately.
    #[must_use]
    pub fn all_actors(mut self) -> Self {
        let all = ActorsConfig::all();
        let actors = &mut self.0.actors;
        actors.kubelet = actors.kubelet.take().or(all.kubelet);
        actors.scheduler = actors.scheduler.take().or(all.scheduler);
        actors.node_controller = actors.node_controller.or(all.node_controller);
        actors.pod_collector = actors.pod_collector.or(all.pod_collector);
        actors.disruption_controller = true;
        actors.controllers.extend(all.controllers);
        actors.volume_binder = actors.volume_binder.take().or(all.volume_binder);
        actors.garbage_collector = actors.garbage_collector.or(all.garbage_collector);
        actors.namespace_controller = actors.namespace_controller.or(all.namespace_controller);
        self
    }

    /// Also runs a controller of another crate. It replaces an actor with the same name, so that no
    /// controller runs twice.
    #[cfg(feature = "client")]
    #[must_use]
    pub fn actor(mut self, actor: ForeignActor) -> Self {
        self.0.foreign.retain(|other| other.name != actor.name);
        self.0.foreign.push(actor);
        self
    }

    /// Makes the kubelet and the scheduler write events, as in a real cluster.
    #[must_use]
    pub fn actor_events(mut self) -> Self {
        self.0.actors.events = true;
        self
    }

    /// Runs a kubelet, and a default scheduler unless one is configured.
    #[must_use]
    pub fn kubelet(mut self, kubelet: KubeletConfig) -> Self {
        self.0.actors.kubelet = Some(kubelet);
        self.0.actors.scheduler.get_or_insert_default();
        self
    }

    /// Runs a scheduler.
    #[must_use]
    pub fn scheduler(mut self, scheduler: SchedulerConfig) -> Self {
        self.0.actors.scheduler = Some(scheduler);
        self
    }

    /// Runs the volume binder; pods then wait until their claims are bound.
    #[must_use]
    pub fn volume_binder(mut self) -> Self {
        self.0.actors.volume_binder.get_or_insert_default();
        self
    }

    /// Runs these controllers of workloads.
    #[must_use]
    pub fn controllers(mut self, controllers: impl IntoIterator<Item = Controller>) -> Self {
        self.0.actors.controllers.extend(controllers);
        self
    }

    /// Runs the garbage collector.
    #[must_use]
    pub fn garbage_collector(mut self) -> Self {
        self.0.actors.garbage_collector.get_or_insert_default();
        self
    }

    /// Runs the namespace controller.
    #[must_use]
    pub fn namespace_controller(mut self) -> Self {
        self.0.actors.namespace_controller.get_or_insert_default();
        self
    }

    /// Sets the start of the clock, which then follows tokio's time.
    #[must_use]
    pub fn starting_at(mut self, now: Timestamp) -> Self {
        self.0.now = Some(now);
        self
    }

    /// Uses another clock for timestamps.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.0.clock = Some(clock);
        self
    }

    /// Also opens a loopback port; port 0 selects a free one.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.0.listen = Some(address);
        self
    }

    /// Also opens a loopback port for the kubelets of all nodes, with the paths of a kubelet's
    /// server: `/containerLogs`, `/exec`, `/attach`, `/portForward`, `/pods` and `/healthz`.
    /// Port 0 selects a free one. Senders need permissions for `nodes/proxy`.
    #[must_use]
    pub fn listen_kubelets(mut self, address: SocketAddr) -> Self {
        self.0.listen_kubelets = Some(address);
        self
    }

    /// Uses this serving certificate instead of a generated one.
    #[must_use]
    pub fn serving_certificate(mut self, certificate: ServingCertificate) -> Self {
        self.0.serving_certificate = Some(certificate);
        self
    }

    /// Accepts client certificates signed by these authorities: the common name is the user, the
    /// organizations are the groups.
    #[must_use]
    pub fn client_authorities(mut self, authorities: ClientAuthorities) -> Self {
        self.0.client_authorities = Some(authorities);
        self
    }

    /// Serves the custom resource of a type, such as one with `#[derive(CustomResource)]`.
    #[cfg(feature = "client")]
    #[must_use]
    pub fn crd<K: kube::CustomResourceExt>(mut self) -> Self {
        // A definition that can't be encoded is refused at the start, as an object without a name.
        let value = serde_json::to_value(K::crd()).unwrap_or_default();
        self.0.definitions.push(Definitions::OfType(value));
        self
    }

    /// Serves the custom resources whose definitions are in a YAML or JSON file, or in all such
    /// files of a folder. Other objects in them are left out.
    #[must_use]
    pub fn crds_from(mut self, path: impl Into<PathBuf>) -> Self {
        self.0.definitions.push(Definitions::In(path.into()));
        self
    }

    /// Calls a handler in this process, such as an `axum::Router`, for the webhooks that name a service
    /// in their configuration. More services can follow after the start: see
    /// [`ApiServer::webhook_services`].
    #[must_use]
    pub fn webhook(self, namespace: &str, service: &str, handler: impl WebhookHandler) -> Self {
        self.0.webhooks.serve(namespace, service, handler);
        self
    }

    /// Calls an address, with TLS, for the webhooks that name a service in their configuration.
    #[must_use]
    pub fn webhook_address(self, namespace: &str, service: &str, address: SocketAddr) -> Self {
        self.0.webhooks.resolve(namespace, service, address);
        self
    }

    /// Starts the control plane. Must be called inside a tokio runtime.
    ///
    /// # Panics
    ///
    /// Panics if the port can't be opened or a definition can't be installed;
    /// [`try_start`](Self::try_start) returns the error.
    pub async fn start(self) -> TestControlPlane {
        match self.try_start().await {
            Ok(plane) => plane,
            Err(err) => panic!("starting the control plane: {err}"),
        }
    }

    /// Starts the control plane. Must be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// The port can't be opened, or a definition can't be installed.
    pub async fn try_start(self) -> Result<TestControlPlane, StartError> {
        let parts = start::start(self.0).await?;
        Ok(TestControlPlane(parts))
    }
}
