//! A control plane with a real API server.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::{Client, Config};
use kube_test_control_plane_actors::{ActorsConfig, Namespaces, Nodes, Pods, Scope};
use kube_test_control_plane_server::auth::Identity;
use serde_json::{Value, json};

use super::binaries::Binaries;
use super::error::{ClusterError, NotEmbedded};
use super::namespaces;
use super::simulated::{NoActors, Simulated};
use super::variables::{ASSETS, EXISTING};

/// The origin of a real API server.
#[derive(Debug)]
pub(super) enum Origin {
    /// Started for the test.
    Binaries(Box<Binaries>),
    /// Existed before the test.
    Existing,
    /// Stopped.
    Stopped,
}

/// A real API server, either started for the test or from an existing cluster.
pub struct RealControlPlane {
    config: Config,
    client: Client,
    /// The namespaces created here.
    namespaces: Namespaces,
    /// `None` if the cluster has its own nodes, or if no actors are configured.
    simulated: Option<Simulated>,
    origin: Origin,
}

impl std::fmt::Debug for RealControlPlane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The configuration and the client hold credentials.
        let Self {
            config,
            client: _,
            namespaces,
            simulated,
            origin,
        } = self;
        f.debug_struct("RealControlPlane")
            .field("url", &config.cluster_url)
            .field("namespaces", namespaces)
            .field("simulated", simulated)
            .field("origin", origin)
            .finish_non_exhaustive()
    }
}

impl RealControlPlane {
    /// Connects to a ready server and starts these actors.
    pub(super) async fn start(
        config: Config,
        origin: Origin,
        actors: ActorsConfig,
    ) -> Result<Self, ClusterError> {
        let client = client("the administrator", config.clone())?;
        let namespaces = Namespaces::default();
        let scope = match &origin {
            Origin::Existing => Scope::Namespaces(namespaces.clone()),
            Origin::Binaries(_) | Origin::Stopped => Scope::Cluster,
        };
        let simulated = Simulated::start(&client, scope, actors).await?;
        Ok(Self {
            config,
            client,
            namespaces,
            simulated,
            origin,
        })
    }

    /// Acts on pods: makes them crash, end or change their behaviour.
    ///
    /// # Errors
    ///
    /// No actors run here.
    pub fn pods(&self) -> Result<Pods<'_>, NoActors> {
        let simulated = self.simulated.as_ref().ok_or(NoActors)?;
        Ok(simulated.pods())
    }

    /// Acts on nodes: disconnects, reconnects and taints them.
    ///
    /// # Errors
    ///
    /// No actors run here.
    pub fn nodes(&self) -> Result<Nodes<'_>, NoActors> {
        let simulated = self.simulated.as_ref().ok_or(NoActors)?;
        Ok(simulated.nodes())
    }

    /// Returns a client with the permissions of the administrator, or of the kubeconfig's user.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns a client with the permissions of another user. The server impersonates the user.
    ///
    /// # Errors
    ///
    /// A header can't carry the user's name.
    pub fn client_as(&self, identity: &Identity) -> Result<Client, ClusterError> {
        let mut config = self.config.clone();
        let user = &mut config.auth_info;
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        user.impersonate = some(&identity.name);
        user.impersonate_uid = some(&identity.uid);
        user.impersonate_groups = Some(identity.groups.clone());
        let extra = identity.extra.clone().into_iter().collect();
        user.impersonate_user_extra = Some(extra);
        client(&identity.name, config)
    }

    /// Returns the server's URL.
    pub fn url(&self) -> String {
        self.config
            .cluster_url
            .to_string()
            .trim_end_matches('/')
            .to_owned()
    }

    /// Returns a kubeconfig with the permissions of [`client`](Self::client).
    pub fn kubeconfig(&self) -> Value {
        self.kubeconfig_of("admin", &json!({}))
    }

    /// Returns a kubeconfig with the permissions of another user. The server impersonates the user.
    pub fn kubeconfig_for(&self, identity: &Identity) -> Value {
        let mut user = json!({"as": identity.name, "as-groups": identity.groups});
        if !identity.uid.is_empty() {
            user["as-uid"] = json!(identity.uid);
        }
        if !identity.extra.is_empty() {
            user["as-user-extra"] = json!(identity.extra);
        }
        self.kubeconfig_of(&identity.name, &user)
    }

    /// Creates a namespace with a generated name. In an existing cluster it is deleted at the end.
    ///
    /// # Errors
    ///
    /// The server rejects the request.
    pub async fn create_namespace(&self, prefix: &str) -> Result<String, ClusterError> {
        let name = namespaces::create(&self.client, prefix).await?;
        self.namespaces.names().insert(name.clone());
        Ok(name)
    }

    /// Returns the folder of the process logs; `None` for an existing cluster.
    pub fn logs(&self) -> Option<&Path> {
        match &self.origin {
            Origin::Binaries(binaries) => Some(binaries.logs()),
            Origin::Existing | Origin::Stopped => None,
        }
    }

    /// Stops the processes. An existing cluster keeps running; only the namespaces created here are
    /// deleted.
    ///
    /// # Errors
    ///
    /// A process did not exit in time and was killed.
    pub async fn stop(mut self) -> Result<(), ClusterError> {
        if let Some(simulated) = self.simulated.take() {
            simulated.stop().await;
        }
        match std::mem::replace(&mut self.origin, Origin::Stopped) {
            Origin::Binaries(binaries) => binaries.stop().await,
            Origin::Existing => {
                namespaces::delete(&self.namespaces, &self.client).await;
                Ok(())
            }
            Origin::Stopped => Ok(()),
        }
    }

    pub(super) fn not_embedded(&self) -> NotEmbedded {
        match &self.origin {
            Origin::Binaries(_) => NotEmbedded {
                backend: "a real kube-apiserver",
                variable: ASSETS,
            },
            Origin::Existing | Origin::Stopped => NotEmbedded {
                backend: "an existing cluster",
                variable: EXISTING,
            },
        }
    }

    fn kubeconfig_of(&self, name: &str, extra: &Value) -> Value {
        let config = &self.config;
        let mut cluster = json!({"server": self.url()});
        if let Some(certificates) = &config.root_cert {
            let pem: String = certificates
                .iter()
                .map(|der| certificate_pem(der))
                .collect();
            cluster["certificate-authority-data"] = json!(STANDARD.encode(pem));
        } else if let Some(path) = &config.root_cert_file {
            cluster["certificate-authority"] = json!(path);
        }
        if config.accept_invalid_certs {
            cluster["insecure-skip-tls-verify"] = json!(true);
        }
        if let Some(name) = &config.tls_server_name {
            cluster["tls-server-name"] = json!(name);
        }
        if let Some(proxy) = &config.proxy_url {
            cluster["proxy-url"] = json!(proxy.to_string());
        }
        // It consists only of strings, lists and maps, so serializing it can't fail.
        let mut user = serde_json::to_value(&config.auth_info).unwrap_or_default();
        if let (Some(user), Some(extra)) = (user.as_object_mut(), extra.as_object()) {
            user.extend(extra.clone());
        }
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "preferences": {},
            "clusters": [{"name": "cluster", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{
                "name": name,
                "context": {
                    "cluster": "cluster",
                    "namespace": config.default_namespace,
                    "user": name,
                },
            }],
        })
    }
}

impl Drop for RealControlPlane {
    fn drop(&mut self) {
        if let Origin::Existing = self.origin {
            namespaces::delete_blocking(&self.namespaces, &self.config);
        }
    }
}

fn client(user: &str, config: Config) -> Result<Client, ClusterError> {
    Client::try_from(config).map_err(|source| ClusterError::Client {
        user: user.to_owned(),
        source,
    })
}

/// Encodes a certificate as PEM, in lines of 64 characters.
fn certificate_pem(der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}
