//! State of the server, in one part for each kind of work. It has no verbs.
//!
//! [`Reads`] shows objects, [`Access`] decides who may do what, [`Writes`] changes objects, and
//! [`Streams`] reaches containers. Each contains the parts that it needs of the former. Only the
//! pipeline and the entry have the whole [`ServerState`].

mod access;
mod allocations;
mod behaviour;
mod conversions;
mod custom;
mod random;
mod reads;
mod streams;
mod writes;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};

use kube_apimachinery::time;
use kube_test_control_plane_store::clock::{Clock, SkewedClock};
use kube_test_control_plane_store::store::Store;
use tokio_util::sync::CancellationToken;

use crate::admission::{AdmissionHooks, Webhooks};
use crate::audit::AuditLog;
use crate::auth::{Identity, IssuedTokens, Rbac, TokenKey};
use crate::config::ServerConfig;
use crate::faults::Faults;
use crate::transport::Stamps;
use conversions::Conversions;
use custom::CustomKinds;

pub(crate) use access::Access;
pub(crate) use allocations::{Allocations, Reservation};
pub(crate) use behaviour::Behaviour;
pub(crate) use custom::{CustomIndex, Indexed};
pub(crate) use reads::Reads;
pub(crate) use streams::Streams;
pub(crate) use writes::Writes;

/// The whole state.
#[derive(Debug)]
pub(crate) struct ServerState {
    pub(crate) reads: Arc<Reads>,
    pub(crate) access: Arc<Access>,
    pub(crate) writes: Writes,
    pub(crate) streams: Streams,
    pub(crate) audit: AuditLog,
    pub(crate) faults: Faults,
    pub(crate) stamps: Stamps,
    pub(crate) config: ServerConfig,
    pub(crate) skew: Arc<SkewedClock>,
}

impl ServerState {
    pub(crate) fn new(config: ServerConfig, clock: Arc<dyn Clock>) -> Self {
        let skew = Arc::new(SkewedClock::new(clock));
        let store = Store::new(config.log_window);
        let (random, timeouts, reviews) = random::seeded(config.seed);
        let random = Arc::new(random);
        let faults = Faults::new(config.seed);
        let reads = Arc::new(Reads {
            store: store.reader(),
            clock: Arc::<SkewedClock>::clone(&skew),
            behaviour: Mutex::new(Behaviour::initial(&config)),
            custom: CustomKinds::default(),
            #[cfg(feature = "cel")]
            policies: crate::admission::policy_index::Policies::default(),
            webhooks: Webhooks::new(store.reader(), faults.clone()),
            conversions: Conversions::default(),
            watch_floor: AtomicU64::new(0),
            timeouts,
            reviews,
            bookmark_interval: config.bookmark_interval,
            has_shards: config.feature_gates.sharded_list_and_watch,
            stopping: CancellationToken::new(),
        });
        let access = Arc::new(Access {
            reads: Arc::clone(&reads),
            random: Arc::clone(&random),
            tokens: config.tokens.clone(),
            issued_tokens: IssuedTokens::default(),
            authorization: config.authorization.clone(),
            admin: Arc::new(Identity::admin()),
            policy: Rbac::default(),
            token_key: TokenKey::default(),
        });
        Self {
            writes: Writes {
                store,
                reads: Arc::clone(&reads),
                access: Arc::clone(&access),
                random,
                admission: AdmissionHooks::default(),
                validates: config.validates,
                service_range: config.service_cluster_ip_range,
                service_accounts: config.service_account_admission.then(OnceLock::new),
                allocations: Mutex::default(),
            },
            streams: Streams {
                reads: Arc::clone(&reads),
                access: Arc::clone(&access),
                faults: faults.clone(),
                kubelets: OnceLock::new(),
                connections: Mutex::default(),
            },
            audit: AuditLog::new(config.audit_limit, config.audit_bodies_max),
            stamps: Stamps::new(config.seed),
            reads,
            access,
            faults,
            config,
            skew,
        }
    }

    /// Returns the clock of timestamps.
    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.reads.clock
    }

    /// Changes the behaviour, as in an upgrade or a rollback of the server.
    pub(crate) fn change_behaviour(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.reads.lock_behaviour());
    }

    /// Rejects watches from earlier revisions than the current one with 410 from now on.
    pub(crate) fn forget_events(&self) {
        self.reads.raise_watch_floor();
    }
}

/// Returns the current time in the API's format.
pub(crate) fn now_text(clock: &dyn Clock) -> String {
    time::format_seconds(clock.now())
}
