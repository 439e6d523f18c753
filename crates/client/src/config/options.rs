//! Options for the connection to an API server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::proxy::ProxyConfig;
use crate::fence::Fence;
use crate::rest::MediaType;
use crate::rest::api_health::ApiHealthLog;
use crate::rest::metrics::{ClientMetrics, NoopClientMetrics};

/// Default time limit for the start of a response. API servers end requests after 60 s by default.
pub const RESPONSE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(90);

/// Location of the API server and the credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Source {
    /// A kubeconfig file. Without it and `master`, the pod's service account is used.
    pub kubeconfig: Option<PathBuf>,
    /// The API server's address; overrides the one in the file.
    pub master: Option<String>,
    /// The proxy from the environment, read by the caller. A proxy in the kubeconfig overrides it.
    pub proxy: ProxyConfig,
}

impl Source {
    /// Sets the kubeconfig file.
    #[must_use]
    pub fn kubeconfig(mut self, path: impl Into<Option<PathBuf>>) -> Self {
        self.kubeconfig = path.into();
        self
    }

    /// Sets the API server's address.
    #[must_use]
    pub fn master(mut self, address: impl Into<Option<String>>) -> Self {
        self.master = address.into();
        self
    }

    /// Sets the proxy from the environment.
    #[must_use]
    pub fn proxy(mut self, proxy: ProxyConfig) -> Self {
        self.proxy = proxy;
        self
    }
}

/// Options of a client. Each client built from them has its own rate limit.
#[derive(Clone)]
#[non_exhaustive]
pub struct ClientOptions {
    /// Average requests per second; 0 or less for no limit.
    pub qps: f64,
    /// Maximum burst of requests.
    pub burst: u32,
    /// The `User-Agent` header.
    pub user_agent: String,
    /// Time limit for the start of a response.
    pub response_timeout: Duration,
    /// Preferred format of watched objects. Everything else is JSON.
    pub media_type: MediaType,
    /// Receives the client's metrics.
    pub metrics: Arc<dyn ClientMetrics>,
    /// Blocks writes while this process isn't the leader; none allows all writes.
    pub fence: Option<Fence>,
    /// True if the client can only read: it rejects other requests before they are sent.
    pub is_read_only: bool,
    /// The log of API health. Clients of one process share it, so that each fault is logged once.
    pub api_health: Arc<ApiHealthLog>,
}

impl Default for ClientOptions {
    /// Upstream's limits: 20 requests per second, bursts of 30.
    fn default() -> Self {
        Self {
            qps: 20.0,
            burst: 30,
            user_agent: "statefulset-controller".to_owned(),
            response_timeout: RESPONSE_TIMEOUT_DEFAULT,
            media_type: MediaType::Protobuf,
            metrics: Arc::new(NoopClientMetrics),
            fence: None,
            is_read_only: false,
            api_health: Arc::default(),
        }
    }
}

impl ClientOptions {
    /// Sets the average requests per second; 0 or less for no limit.
    #[must_use]
    pub fn qps(mut self, qps: f64) -> Self {
        self.qps = qps;
        self
    }

    /// Sets the maximum burst of requests.
    #[must_use]
    pub fn burst(mut self, burst: u32) -> Self {
        self.burst = burst;
        self
    }

    /// Sets the `User-Agent` header.
    #[must_use]
    pub fn user_agent(mut self, user_agent: impl Into<String>) -> Self {
        self.user_agent = user_agent.into();
        self
    }

    /// Sets the time limit for the start of a response.
    #[must_use]
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// Sets the preferred format of watched objects.
    #[must_use]
    pub fn media_type(mut self, media_type: MediaType) -> Self {
        self.media_type = media_type;
        self
    }

    /// Sends the client's metrics to this receiver.
    #[must_use]
    pub fn metrics(mut self, metrics: Arc<dyn ClientMetrics>) -> Self {
        self.metrics = metrics;
        self
    }

    /// Blocks writes while this fence is closed.
    #[must_use]
    pub fn fence(mut self, fence: impl Into<Option<Fence>>) -> Self {
        self.fence = fence.into();
        self
    }

    /// Rejects requests that write before they are sent.
    #[must_use]
    pub fn read_only(mut self, is_read_only: bool) -> Self {
        self.is_read_only = is_read_only;
        self
    }

    /// Shares the log of API health with other clients of the process.
    #[must_use]
    pub fn api_health(mut self, log: Arc<ApiHealthLog>) -> Self {
        self.api_health = log;
        self
    }
}
