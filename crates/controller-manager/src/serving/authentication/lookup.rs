//! The cluster's authentication settings: the ConfigMap that API servers maintain for programs that
//! delegate authentication to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use rustls::crypto::CryptoProvider;
use statefulset_client::error::Error;
use statefulset_client::fault_log::FaultLog;
use statefulset_client::resource::Resource;
use statefulset_client::rest::RestClient;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{HeaderNames, RequestHeader};
use crate::serving::client_ca::{Authorities, ClientCa};

/// Namespace of the ConfigMap.
const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
const CONFIG_MAPS: Resource = Resource {
    group: "",
    version: "v1",
    plural: "configmaps",
    kind: "ConfigMap",
};
/// Time between two reads.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// Pause after the first failed read; each further pause doubles.
const RETRY_INTERVAL_MIN: Duration = Duration::from_secs(1);
/// Role that grants read access to the ConfigMap.
const READER: &str = "extension-apiserver-authentication-reader";

/// Reason why the cluster's settings are unknown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookupError {
    /// The ConfigMap can't be read.
    #[error("cannot read ConfigMap {NAMESPACE}/{NAME}: {0}")]
    Read(#[source] Error),
    /// The ConfigMap is invalid.
    #[error("cannot use ConfigMap {NAMESPACE}/{NAME}: {0}")]
    Bad(String),
}

impl LookupError {
    /// Returns true if a permission is missing.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Read(error) if error.is_forbidden())
    }

    /// True if `ApiHealthLog` has logged it.
    fn is_logged(&self) -> bool {
        matches!(self, Self::Read(error) if !error.is_forbidden() && error.is_server_wide())
    }
}

/// Parsed content of the ConfigMap.
#[derive(Debug, Default)]
struct Settings {
    client_ca: Option<Authorities>,
    proxy_ca: Option<Authorities>,
    names: HeaderNames,
}

/// Follows changes of the ConfigMap.
pub(crate) struct Lookup {
    client: RestClient,
    provider: Arc<CryptoProvider>,
    /// Receives the authorities of clients.
    client_ca: Option<Arc<ClientCa>>,
    /// Receives the trusted proxies.
    request_header: Option<Arc<RequestHeader>>,
    /// The log of failed lookups.
    failure: FaultLog<String>,
}

impl Lookup {
    /// Creates a lookup for the settings that no flag provides. Before the first successful read no
    /// certificate is accepted.
    ///
    /// Upstream: `createRequestHeaderConfig`, `NewDynamicCAFromConfigMapController`.
    pub(crate) fn new(
        client: RestClient,
        provider: Arc<CryptoProvider>,
        wants_client_ca: bool,
        wants_request_header: bool,
    ) -> Self {
        let empty = || Arc::new(ClientCa::looked_up(None));
        let proxies = || Arc::new(RequestHeader::new(empty(), HeaderNames::default()));
        Self {
            client,
            provider,
            client_ca: wants_client_ca.then(empty),
            request_header: wants_request_header.then(proxies),
            failure: FaultLog::default(),
        }
    }

    /// Reads the settings once.
    ///
    /// # Errors
    ///
    /// The ConfigMap can't be read or is invalid; the earlier settings stay in use.
    pub(crate) async fn look(&mut self) -> Result<(), LookupError> {
        let settings = read(&self.client, &self.provider).await?;
        self.apply(settings);
        Ok(())
    }

    /// Reads the settings once, and logs failures and recoveries. Returns whether it succeeded.
    pub(crate) async fn read_or_log(&mut self) -> bool {
        match self.look().await {
            Ok(()) => {
                if self.failure.end().is_some() {
                    tracing::info!("read the cluster's authentication settings");
                }
                true
            }
            Err(error) => {
                self.log(&error);
                false
            }
        }
    }

    fn log(&mut self, error: &LookupError) {
        let text = error.to_string();
        if error.is_logged() || !self.failure.begin(text) {
            return;
        }
        let advice = if error.is_forbidden() {
            format!("; bind the Role {READER} in {NAMESPACE} to this user")
        } else {
            String::new()
        };
        tracing::warn!(
            %error,
            "cannot read the cluster's authentication settings, trying again{advice}"
        );
    }

    /// Authorities of client certificates, if the lookup provides them.
    pub(crate) fn client_ca(&self) -> Option<Arc<ClientCa>> {
        self.client_ca.clone()
    }

    /// Proxies with accepted request headers, if the lookup provides them.
    pub(crate) fn request_header(&self) -> Option<Arc<RequestHeader>> {
        self.request_header.clone()
    }

    /// Reads the settings periodically until `stop`.
    pub(crate) async fn follow(mut self, stop: CancellationToken) {
        let looking = async {
            let mut retry = RETRY_INTERVAL_MIN;
            loop {
                if self.read_or_log().await {
                    retry = RETRY_INTERVAL_MIN;
                    sleep(LOOK_INTERVAL).await;
                } else {
                    sleep(retry).await;
                    retry = (retry * 2).min(LOOK_INTERVAL);
                }
            }
        };
        stop.run_until_cancelled(looking).await;
    }

    fn apply(&self, settings: Settings) {
        if let Some(ca) = &self.client_ca {
            ca.set(settings.client_ca);
        }
        if let Some(proxy) = &self.request_header {
            proxy.ca().set(settings.proxy_ca);
            proxy.set_names(settings.names);
        }
    }
}

async fn read(
    client: &RestClient,
    provider: &Arc<CryptoProvider>,
) -> Result<Settings, LookupError> {
    let text = match client.get(&CONFIG_MAPS, NAMESPACE, NAME).await {
        Ok(text) => text,
        // Without the ConfigMap no certificate or header is accepted.
        Err(error) if error.is_not_found() => return Ok(Settings::default()),
        Err(error) => return Err(LookupError::Read(error)),
    };
    let map: ConfigMap =
        serde_json::from_str(&text).map_err(|err| LookupError::Bad(err.to_string()))?;
    let data = map.data.unwrap_or_default();
    let authorities = |key: &str| {
        let pem = data.get(key).filter(|pem| !pem.trim().is_empty());
        let parsed = pem.map(|pem| Authorities::parse(pem.as_bytes(), provider));
        parsed
            .transpose()
            .map_err(|err| LookupError::Bad(format!("{key}: {err}")))
    };
    Ok(Settings {
        client_ca: authorities("client-ca-file")?,
        proxy_ca: authorities("requestheader-client-ca-file")?,
        names: HeaderNames {
            allowed_names: list(&data, "requestheader-allowed-names")?,
            user: list(&data, "requestheader-username-headers")?,
            uid: list(&data, "requestheader-uid-headers")?,
            groups: list(&data, "requestheader-group-headers")?,
            extra_prefixes: list(&data, "requestheader-extra-headers-prefix")?,
        },
    })
}

/// A list, stored as JSON in a string.
fn list(data: &BTreeMap<String, String>, key: &str) -> Result<Vec<String>, LookupError> {
    let Some(text) = data.get(key).filter(|text| !text.is_empty()) else {
        return Ok(Vec::new());
    };
    serde_json::from_str(text).map_err(|err| LookupError::Bad(format!("{key}: {err}")))
}
