//! Names of `statefulset-client` that embedders use.

pub use statefulset_client::error;

/// Random delays.
pub mod backoff {
    pub use statefulset_client::backoff::{Jitter, SeededJitter};
}

/// Caches and the informers that fill them.
pub mod cache {
    /// Indexed caches.
    pub mod indexer {
        pub use statefulset_client::cache::indexer::{
            CachedObject, FromProtobuf, IndexKey, Indexer, OwnerPool, Replaced, SetAside,
            SetAsideOwner, SharedParts, SharedText, TextPool,
        };
    }

    /// Informers.
    pub mod informer {
        pub use statefulset_client::cache::informer::{
            EventHandler, Informer, InformerConfig, InformerMetrics, InformerMetricsProvider,
            NoopInformerMetrics, NoopInformerMetricsProvider, Relister,
        };
    }
}

/// Clocks.
pub mod clock {
    pub use statefulset_client::clock::{
        BootClock, Clock, MonotonicClock, SystemClock, TokioClock,
    };
}

/// Clients from a configuration, and around other clients.
pub mod config {
    pub use statefulset_client::config::{
        ClientOptions, Config, ConfigError, ProxyConfig, ProxyError, RESPONSE_TIMEOUT_DEFAULT,
        ServerUrlError, Source, around, check, client, client_of_service_account, fenced, layered,
        load,
    };
}

/// Feature gates and the emulated version.
pub mod feature_gates {
    pub use statefulset_client::feature_gates::{
        FeatureGateError, FeatureGates, IllegalVersion, KubeVersion,
    };
}

/// The fence that blocks writes without a lease.
pub mod fence {
    pub use statefulset_client::fence::{Fence, NotLeading};
}

/// Leader election.
pub mod leaderelection {
    pub use statefulset_client::leaderelection::{
        ConfigError, ElectorParts, Ended, LeaderElectionConfig, LeaderElectionMetrics,
        LeaderElector, LeaderHealth, LeaseLock, LeaseName, Lost, NoopLeaderElectionMetrics,
    };
}

/// Metric families of the Prometheus library.
#[cfg(feature = "prometheus")]
pub mod metrics {
    pub use statefulset_client::metrics::{
        InformerFamilies, LeaderElectionFamilies, RestClientFamilies, WorkqueueFamilies, text,
    };
}

/// Events.
pub mod recorder {
    pub use statefulset_client::recorder::{
        BroadcastRecorder, EventRecorder, EventSink, EventType, NoopRecorder, ObjectReference,
    };
}

/// Resources by group, version and name.
pub mod resource {
    pub use statefulset_client::resource::{GroupResource, Resource};
}

/// Requests on raw JSON.
pub mod rest {
    pub use statefulset_client::rest::api_health::ApiHealthLog;
    pub use statefulset_client::rest::metrics::{ClientMetrics, NoopClientMetrics};
    pub use statefulset_client::rest::{
        JsonObject, ListMetadata, ListOptions, ListStream, MediaType, PatchType, RestClient,
        WatchEvent, WatchObject, WatchOptions, WatchStream,
    };
}

/// Shards of the namespaces.
pub mod shard {
    pub use statefulset_client::shard::{ParseShardError, Shard};
}

/// Credentials.
pub mod transport {
    pub use statefulset_client::transport::{ServiceAccountName, ServiceAccountToken};
}

/// Work queues.
pub mod workqueue {
    pub use statefulset_client::workqueue::{
        NoopQueueMetrics, QueueMetrics, RateLimiter, Unfinished, WorkQueue,
    };
}
