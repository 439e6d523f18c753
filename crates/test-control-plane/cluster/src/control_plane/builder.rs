//! Configures and starts a control plane.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use http::Method;
use jiff::Timestamp;
use kube_test_control_plane_actors::{
    self as actors, ActorServer, ActorsConfig, Controller, KubeletConfig, SchedulerConfig,
};
use kube_test_control_plane_server::auth::{Authorization, Tokens};
use kube_test_control_plane_server::certificates::{
    ClientAuthorities, ServingCertificate, TlsMaterial,
};
use kube_test_control_plane_server::config::{
    EmulatedVersion, FeatureGates, ServerConfig, UnknownFields,
};
use kube_test_control_plane_server::server::ApiServer;
use kube_test_control_plane_server::tls::{self, Backend, ListenError};
use kube_test_control_plane_store::clock::{Clock, TokioClock};
#[cfg(feature = "client")]
use serde_json::Value;
use serde_json::json;
use tokio::task::JoinSet;

#[cfg(feature = "client")]
use super::actor::ForeignActor;
use super::apply::apply_all;
use super::{Endpoint, TestControlPlane};
use crate::manifests::{self, Manifest, ManifestError};

/// The namespaces of every cluster.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// The default start of the clock: 2026-01-01T00:00:00Z.
const EPOCH_SECONDS: i64 = 1_767_225_600;

/// A reason why a control plane failed to start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Opening the port failed.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A definition can't be installed.
    #[error(transparent)]
    Definition(#[from] ManifestError),
}

/// Builds a [`TestControlPlane`].
#[derive(Clone, Debug, Default)]
pub struct TestControlPlaneBuilder {
    config: ServerConfig,
    actors: ActorsConfig,
    now: Option<Timestamp>,
    clock: Option<Arc<dyn Clock>>,
    listen: Option<SocketAddr>,
    listen_kubelets: Option<SocketAddr>,
    serving_certificate: Option<ServingCertificate>,
    client_authorities: Option<ClientAuthorities>,
    definitions: Vec<Definitions>,
    #[cfg(feature = "client")]
    foreign: Vec<ForeignActor>,
}

/// Definitions of custom resources to install at the start.
#[derive(Clone, Debug)]
enum Definitions {
    /// The definition of a Rust type.
    #[cfg(feature = "client")]
    OfType(Value),
    /// Those of a file or a folder.
    In(PathBuf),
}

impl Definitions {
    fn read(self) -> Result<Vec<Manifest>, ManifestError> {
        match self {
            #[cfg(feature = "client")]
            Self::OfType(value) => Ok(vec![Manifest {
                place: "crd()".to_owned(),
                value,
            }]),
            Self::In(path) => {
                let mut found = manifests::read(&path)?;
                found.retain(Manifest::is_definition);
                if found.is_empty() {
                    return Err(ManifestError::NoDefinition { path });
                }
                Ok(found)
            }
        }
    }
}

/// The cluster IP of the API server: the first address of the service range.
const SERVICE_ADDRESS: &str = "10.96.0.1";

/// kube-apiserver's default port.
const DEFAULT_PORT: u16 = 6443;

/// The user agent of the control plane's own requests at its start.
const BOOTSTRAP: &str = "kube-apiserver/v1.36.2";

impl TestControlPlaneBuilder {
    /// Sets the server's whole configuration.
    #[must_use]
    pub fn server_config(mut self, config: ServerConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the version that the server behaves like, and the defaults of its gates.
    #[must_use]
    pub fn emulated_version(mut self, version: EmulatedVersion) -> Self {
        self.config.emulated_version = version;
        self.config.feature_gates = FeatureGates::at(version);
        self
    }

    /// Sets the treatment of members outside the schema of the emulated version: prune them, as the
    /// reference does, or keep them.
    #[must_use]
    pub fn unknown_fields(mut self, unknown_fields: UnknownFields) -> Self {
        self.config.unknown_fields = unknown_fields;
        self
    }

    /// Sets the feature gates.
    #[must_use]
    pub fn feature_gates(mut self, gates: FeatureGates) -> Self {
        self.config.feature_gates = gates;
        self
    }

    /// Sets the seed of uids and generated names.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = seed;
        self
    }

    /// Sets the static bearer tokens.
    #[must_use]
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.config.tokens = tokens;
        self
    }

    /// Sets the authorizer; by default roles and bindings decide.
    #[must_use]
    pub fn authorization(mut self, authorization: impl Into<Authorization>) -> Self {
        self.config.authorization = authorization.into();
        self
    }

    /// Sets the actors to run.
    #[must_use]
    pub fn actors(mut self, actors: ActorsConfig) -> Self {
        self.actors = actors;
        self
    }

    /// Changes the configuration of the actors.
    #[must_use]
    pub fn configure_actors(mut self, change: impl FnOnce(&mut ActorsConfig)) -> Self {
        change(&mut self.actors);
        self
    }

    /// Runs all actors, with defaults for those not configured yet. Pods become ready immediately.
    #[must_use]
    pub fn all_actors(mut self) -> Self {
        let all = ActorsConfig::all();
        let actors = &mut self.actors;
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
        self.foreign.retain(|other| other.name != actor.name);
        self.foreign.push(actor);
        self
    }

    /// Makes the kubelet and the scheduler write events, as in a real cluster.
    #[must_use]
    pub fn actor_events(mut self) -> Self {
        self.actors.events = true;
        self
    }

    /// Runs a kubelet, and a default scheduler unless one is configured.
    #[must_use]
    pub fn kubelet(mut self, kubelet: KubeletConfig) -> Self {
        self.actors.kubelet = Some(kubelet);
        self.actors.scheduler.get_or_insert_default();
        self
    }

    /// Runs a scheduler.
    #[must_use]
    pub fn scheduler(mut self, scheduler: SchedulerConfig) -> Self {
        self.actors.scheduler = Some(scheduler);
        self
    }

    /// Runs the volume binder; pods then wait until their claims are bound.
    #[must_use]
    pub fn volume_binder(mut self) -> Self {
        self.actors.volume_binder.get_or_insert_default();
        self
    }

    /// Runs these controllers of workloads.
    #[must_use]
    pub fn controllers(mut self, controllers: impl IntoIterator<Item = Controller>) -> Self {
        self.actors.controllers.extend(controllers);
        self
    }

    /// Runs the garbage collector.
    #[must_use]
    pub fn garbage_collector(mut self) -> Self {
        self.actors.garbage_collector.get_or_insert_default();
        self
    }

    /// Runs the namespace controller.
    #[must_use]
    pub fn namespace_controller(mut self) -> Self {
        self.actors.namespace_controller.get_or_insert_default();
        self
    }

    /// Sets the start of the clock, which then follows tokio's time.
    #[must_use]
    pub fn starting_at(mut self, now: Timestamp) -> Self {
        self.now = Some(now);
        self
    }

    /// Uses another clock for timestamps.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Also opens a loopback port; port 0 selects a free one.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = Some(address);
        self
    }

    /// Also opens a loopback port for the kubelets of all nodes, with the paths of a kubelet's
    /// server: `/containerLogs`, `/exec`, `/attach`, `/portForward`, `/pods` and `/healthz`.
    /// Port 0 selects a free one. Senders need permissions for `nodes/proxy`.
    #[must_use]
    pub fn listen_kubelets(mut self, address: SocketAddr) -> Self {
        self.listen_kubelets = Some(address);
        self
    }

    /// Uses this serving certificate instead of a generated one.
    #[must_use]
    pub fn serving_certificate(mut self, certificate: ServingCertificate) -> Self {
        self.serving_certificate = Some(certificate);
        self
    }

    /// Accepts client certificates signed by these authorities: the common name is the user, the
    /// organizations are the groups.
    #[must_use]
    pub fn client_authorities(mut self, authorities: ClientAuthorities) -> Self {
        self.client_authorities = Some(authorities);
        self
    }

    /// Serves the custom resource of a type, such as one with `#[derive(CustomResource)]`.
    #[cfg(feature = "client")]
    #[must_use]
    pub fn crd<K: kube::CustomResourceExt>(mut self) -> Self {
        // A definition that can't be encoded is refused at the start, as an object without a name.
        let value = serde_json::to_value(K::crd()).unwrap_or_default();
        self.definitions.push(Definitions::OfType(value));
        self
    }

    /// Serves the custom resources whose definitions are in a YAML or JSON file, or in all such
    /// files of a folder. Other objects in them are left out.
    #[must_use]
    pub fn crds_from(mut self, path: impl Into<PathBuf>) -> Self {
        self.definitions.push(Definitions::In(path.into()));
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
        let epoch = Timestamp::from_second(EPOCH_SECONDS).unwrap_or_default();
        let base = self.now.unwrap_or(epoch);
        let clock = self
            .clock
            .unwrap_or_else(|| Arc::new(TokioClock::starting_at(base)));
        let server = ApiServer::new(self.config, clock);
        let mut tasks = JoinSet::new();
        let mut endpoint = None;
        let mut kubelets = None;
        if self.listen.or(self.listen_kubelets).is_some() {
            let mut tls = TlsMaterial::generate().map_err(ListenError::from)?;
            if let Some(certificate) = self.serving_certificate {
                tls = tls.serving(certificate);
            }
            if let Some(authorities) = self.client_authorities {
                tls = tls.trusting_client_authorities(authorities);
            }
            let mut open = async |address, backend| {
                let (server, stopping) = ((server.clone(), backend), server.stopping());
                tls::listen(server, address, &tls, &mut tasks, stopping).await
            };
            if let Some(address) = self.listen_kubelets {
                kubelets = Some(open(address, Backend::Kubelets).await?);
            }
            if let Some(address) = self.listen {
                let address = open(address, Backend::Api).await?;
                endpoint = Some(Box::new(Endpoint { address, tls }));
            }
        }
        for name in NAMESPACES {
            let body = json!({"metadata": {"name": name}});
            let path = "/api/v1/namespaces";
            server.call_json(Method::POST, path, BOOTSTRAP, &body).await;
        }
        let port = endpoint.as_ref().map(|endpoint| endpoint.address.port());
        publish_service(&server, port.unwrap_or(DEFAULT_PORT)).await;
        if let Some(endpoint) = &endpoint {
            publish_client_ca(&server, &endpoint.tls.client_ca_pem()).await;
        }
        server.install_bootstrap_policy();
        for definitions in self.definitions {
            apply_all(&server, definitions.read()?).await?;
        }
        #[cfg(feature = "client")]
        for actor in &self.foreign {
            tasks.spawn(actor.run(&server, self.actors.events));
        }
        let actors = actors::start(
            &ActorServer::Embedded(server.clone()),
            self.actors,
            &mut tasks,
        )
        .await;
        server.audit().clear();
        Ok(TestControlPlane {
            server,
            actors,
            tasks,
            endpoint,
            kubelets,
        })
    }
}

/// Creates the service that pods use to reach the API server.
async fn publish_service(server: &ApiServer, port: u16) {
    let service = json!({
        "metadata": {
            "name": "kubernetes",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": SERVICE_ADDRESS,
            "ports": [{"name": "https", "port": 443, "targetPort": port}],
        },
    });
    let path = "/api/v1/namespaces/default/services";
    server
        .call_json(Method::POST, path, BOOTSTRAP, &service)
        .await;
}

/// Publishes the client CA for aggregated API servers, which check client certificates themselves
/// before they request a token review.
async fn publish_client_ca(server: &ApiServer, ca_pem: &str) {
    let map = json!({
        "metadata": {"name": "extension-apiserver-authentication"},
        "data": {"client-ca-file": ca_pem},
    });
    let path = "/api/v1/namespaces/kube-system/configmaps";
    server.call_json(Method::POST, path, BOOTSTRAP, &map).await;
}
