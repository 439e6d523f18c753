//! Starts a control plane.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use http::Method;
use jiff::Timestamp;
use kube_test_control_plane_actors::{self as actors, ActorServer, ActorsConfig, Handles};
use kube_test_control_plane_server::admission::WebhookServices;
use kube_test_control_plane_server::certificates::{
    ClientAuthorities, ServingCertificate, TlsMaterial,
};
use kube_test_control_plane_server::config::ServerConfig;
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
use crate::manifests::{self, Manifest, ManifestError};

/// The namespaces of every cluster.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// The default start of the clock: 2026-01-01T00:00:00Z.
const EPOCH_SECONDS: i64 = 1_767_225_600;

/// A reason why a control plane failed to start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Opening the port failed.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A definition can't be installed.
    #[error(transparent)]
    Definition(#[from] ManifestError),
}

/// Settings of a control plane.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub(super) config: ServerConfig,
    pub(super) actors: ActorsConfig,
    pub(super) now: Option<Timestamp>,
    pub(super) clock: Option<Arc<dyn Clock>>,
    pub(super) listen: Option<SocketAddr>,
    pub(super) listen_kubelets: Option<SocketAddr>,
    pub(super) serving_certificate: Option<ServingCertificate>,
    pub(super) client_authorities: Option<ClientAuthorities>,
    pub(super) definitions: Vec<Definitions>,
    pub(super) webhooks: WebhookServices,
    #[cfg(feature = "client")]
    pub(super) foreign: Vec<ForeignActor>,
}

/// The parts of a running control plane.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) server: ApiServer,
    pub(super) actors: Handles,
    pub(super) tasks: JoinSet<()>,
    pub(super) endpoint: Option<Box<Endpoint>>,
    pub(super) kubelets: Option<SocketAddr>,
}

/// The loopback port of a control plane.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) address: SocketAddr,
    pub(super) tls: TlsMaterial,
}

/// Definitions of custom resources to install at the start.
#[derive(Clone, Debug)]
pub(super) enum Definitions {
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

/// kube-apiserver's default port.
const DEFAULT_PORT: u16 = 6443;

/// The user agent of the control plane's own requests at its start.
const BOOTSTRAP: &str = "kube-apiserver/v1.36.2";

/// Starts a control plane.
///
/// # Errors
///
/// The port can't be opened, or a definition can't be installed.
pub(super) async fn start(settings: Settings) -> Result<Parts, StartError> {
    let epoch = Timestamp::from_second(EPOCH_SECONDS).unwrap_or_default();
    let base = settings.now.unwrap_or(epoch);
    let clock = settings
        .clock
        .unwrap_or_else(|| Arc::new(TokioClock::starting_at(base)));
    let server = ApiServer::new(settings.config, clock);
    server.webhook_services().add_all(&settings.webhooks);
    let mut tasks = JoinSet::new();
    let mut endpoint = None;
    let mut kubelets = None;
    if settings.listen.or(settings.listen_kubelets).is_some() {
        let mut tls = TlsMaterial::generate().map_err(ListenError::from)?;
        if let Some(certificate) = settings.serving_certificate {
            tls = tls.serving(certificate);
        }
        if let Some(authorities) = settings.client_authorities {
            tls = tls.trusting_client_authorities(authorities);
        }
        let mut open = async |address, backend| {
            let (server, stopping) = ((server.clone(), backend), server.stopping());
            tls::listen(server, address, &tls, &mut tasks, stopping).await
        };
        if let Some(address) = settings.listen_kubelets {
            kubelets = Some(open(address, Backend::Kubelets).await?);
        }
        if let Some(address) = settings.listen {
            let address = open(address, Backend::Api).await?;
            endpoint = Some(Box::new(Endpoint { address, tls }));
        }
    }
    if let Some(endpoint) = &endpoint {
        server.set_root_ca(&endpoint.tls.ca_pem);
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
    for definitions in settings.definitions {
        apply_all(&server, definitions.read()?).await?;
    }
    #[cfg(feature = "client")]
    for actor in &settings.foreign {
        tasks.spawn(actor.run(&server, settings.actors.events));
    }
    let actors = actors::start(
        &ActorServer::Embedded(server.clone()),
        settings.actors,
        &mut tasks,
    )
    .await;
    server.audit().clear();
    Ok(Parts {
        server,
        actors,
        tasks,
        endpoint,
        kubelets,
    })
}

/// Creates the service that pods use to reach the API server.
async fn publish_service(server: &ApiServer, port: u16) {
    let service = json!({
        "metadata": {
            "name": "kubernetes",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": server.config().service_cluster_ip_range.first().to_string(),
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
