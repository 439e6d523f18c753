//! State of the API server.

mod allocations;
mod random;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kube_test_control_plane_api::custom::DEFINITIONS;
use kube_test_control_plane_api::kinds::{self, Kind};
use kube_test_control_plane_api::normalize::OlderObject;
use kube_test_control_plane_api::object::{AsIs, StoreAsIsError};
use kube_test_control_plane_store::clock::{Clock, SkewedClock};
use kube_test_control_plane_store::store::Store;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::admission::AdmissionHooks;
use crate::audit::AuditLog;
use crate::auth::{Identity, IssuedTokens, KeyError, Rbac, RbacIndex, SigningKey, TokenKey};
use crate::config::{EmulatedVersion, FeatureGates, ServerConfig, UnknownFields};
use crate::containers::Kubelets;
use crate::custom::{CustomIndex, CustomKinds};
use crate::faults::Faults;
use crate::transport::Stamps;
pub(crate) use allocations::Allocations;
use random::RandomSources;

/// The connection was dropped by a fault, or the reference would have panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection was dropped")]
pub struct ConnectionDropped;

/// The API server. Clones share their state.
#[derive(Clone, Debug)]
pub struct ApiServer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    clock: Arc<dyn Clock>,
    skew: Arc<SkewedClock>,
    /// Watches from an earlier revision get 410.
    watch_floor: AtomicU64,
    random: Mutex<RandomSources>,
    behaviour: Mutex<Behaviour>,
    allocations: Mutex<Allocations>,
    config: ServerConfig,
    audit: AuditLog,
    faults: Faults,
    admission: AdmissionHooks,
    stamps: Stamps,
    policy: Rbac,
    custom: CustomKinds,
    kubelets: OnceLock<Arc<dyn Kubelets>>,
    /// The work of connections that clients have taken over.
    connections: Mutex<JoinSet<()>>,
    token_key: TokenKey,
    issued_tokens: IssuedTokens,
    /// Default user of requests in this process.
    admin: Arc<Identity>,
    stopping: CancellationToken,
}

/// The part of the configuration that an upgrade or a rollback of the server changes.
#[derive(Clone, Copy, Debug)]
struct Behaviour {
    unknown_fields: UnknownFields,
    version: EmulatedVersion,
    gates: FeatureGates,
}

impl ApiServer {
    /// Creates a server with an empty store.
    pub fn new(config: ServerConfig, clock: Arc<dyn Clock>) -> Self {
        let skew = Arc::new(SkewedClock::new(clock));
        Self(Arc::new(Inner {
            store: Store::new(config.log_window),
            clock: Arc::<SkewedClock>::clone(&skew),
            skew,
            watch_floor: AtomicU64::new(0),
            random: Mutex::new(RandomSources::new(config.seed)),
            behaviour: Mutex::new(Behaviour {
                unknown_fields: config.unknown_fields,
                version: config.emulated_version,
                gates: config.feature_gates,
            }),
            allocations: Mutex::new(Allocations::default()),
            audit: AuditLog::new(config.audit_limit, config.audit_bodies_max),
            faults: Faults::new(config.seed),
            admission: AdmissionHooks::default(),
            stamps: Stamps::new(config.seed),
            policy: Rbac::default(),
            custom: CustomKinds::default(),
            kubelets: OnceLock::new(),
            connections: Mutex::default(),
            token_key: TokenKey::default(),
            issued_tokens: IssuedTokens::default(),
            admin: Arc::new(Identity::admin()),
            stopping: CancellationToken::new(),
            config,
        }))
    }

    /// Returns the store, for inspection and compaction.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Stores an object byte by byte, except for its `metadata.resourceVersion`, in place of an
    /// existing one with its name. Nothing is validated, defaulted or rejected. GET, LIST and WATCH
    /// return these bytes until the next write of the object, including invalid UTF-8, lone
    /// surrogates and any depth that Go can read. A list omits leading `kind` and `apiVersion`
    /// members, as always.
    ///
    /// For controllers under test, which must handle any stored object.
    ///
    /// # Errors
    ///
    /// The text is not JSON, has no name, or is of a kind that the server doesn't store.
    pub fn store_as_is(&self, text: &[u8]) -> Result<(), StoreAsIsError> {
        let object = AsIs::read(text)?;
        self.0.store.put_as_is(&object);
        if &*object.kind.storage == DEFINITIONS {
            self.settle_definitions(None);
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
        } = *self.behaviour();
        let mut object = OlderObject::read(text, version, gates, unknown_fields)?;
        object.identify(&self.new_uid(), &self.now_text());
        let OlderObject { kind, key, draft } = object;
        self.0.store.replace(kind, key, draft);
        if &*kind.storage == DEFINITIONS {
            self.settle_definitions(None);
        }
        Ok(())
    }

    /// Returns the clock of timestamps.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.clock
    }

    /// Returns the configuration. Its policy for unknown fields, its version and its gates are the
    /// initial ones.
    pub fn config(&self) -> &ServerConfig {
        &self.0.config
    }

    /// Returns the policy for unknown fields.
    pub fn unknown_fields(&self) -> UnknownFields {
        self.behaviour().unknown_fields
    }

    /// Changes the policy for unknown fields, as in an upgrade of the server. Stored objects stay
    /// unchanged.
    pub fn set_unknown_fields(&self, policy: UnknownFields) {
        self.behaviour().unknown_fields = policy;
    }

    /// Returns the emulated version.
    pub fn emulated_version(&self) -> EmulatedVersion {
        self.behaviour().version
    }

    /// Returns the feature gates.
    pub fn feature_gates(&self) -> FeatureGates {
        self.behaviour().gates
    }

    /// Changes the version and its gates, as in an upgrade or a rollback of the server. Stored
    /// objects stay unchanged; each loses the fields that the version lacks with its next write.
    pub fn set_emulated_version(&self, version: EmulatedVersion, gates: FeatureGates) {
        let mut behaviour = self.behaviour();
        behaviour.version = version;
        behaviour.gates = gates;
    }

    fn behaviour(&self) -> MutexGuard<'_, Behaviour> {
        let behaviour = self.0.behaviour.lock();
        behaviour.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the audit log.
    pub fn audit(&self) -> &AuditLog {
        &self.0.audit
    }

    /// Returns the fault rules.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// Returns the index of the roles and bindings.
    pub(crate) fn policy_index(&self) -> Arc<RbacIndex> {
        self.0.policy.index(&self.0.store)
    }

    /// Finds the row of a kind in a body, custom resources included.
    pub fn kind_of(&self, api_version: &str, kind: &str) -> Option<Arc<Kind>> {
        let built_in = kinds::by_kind(api_version, kind).map(Arc::clone);
        built_in.or_else(|| {
            self.custom_kinds()
                .by_kind(api_version, kind)
                .map(Arc::clone)
        })
    }

    /// Finds a row that stores objects under this storage name, custom resources included.
    pub fn kind_stored_as(&self, storage: &str) -> Option<Arc<Kind>> {
        let built_in = kinds::by_storage(storage).map(Arc::clone);
        built_in.or_else(|| self.custom_kinds().by_storage(storage).map(Arc::clone))
    }

    /// Returns one row of each served custom resource.
    pub fn stored_custom_kinds(&self) -> Vec<Arc<Kind>> {
        self.custom_kinds().stored().map(Arc::clone).collect()
    }

    /// Returns the rows of the custom resources.
    pub(crate) fn custom_kinds(&self) -> Arc<CustomIndex> {
        self.0.custom.index(&self.0.store)
    }

    /// Returns the default user of requests in this process.
    pub(crate) fn admin(&self) -> &Arc<Identity> {
        &self.0.admin
    }

    /// Returns the generator of response identifiers.
    pub(crate) fn stamps(&self) -> &Stamps {
        &self.0.stamps
    }

    pub(crate) fn issued_tokens(&self) -> &IssuedTokens {
        &self.0.issued_tokens
    }

    /// Returns the signing key of service account tokens.
    pub(crate) fn token_key(&self) -> Result<&SigningKey, KeyError> {
        self.0.token_key.get()
    }

    /// Returns the admission hooks.
    pub fn admission(&self) -> &AdmissionHooks {
        &self.0.admission
    }

    /// Reaches the containers of the nodes through these kubelets from now on. Later calls have no
    /// effect.
    pub fn serve_containers(&self, kubelets: Arc<dyn Kubelets>) {
        let _ = self.0.kubelets.set(kubelets);
    }

    /// Runs the work of a connection until it ends.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let connections = self.0.connections.lock();
        let mut connections = connections.unwrap_or_else(PoisonError::into_inner);
        while connections.try_join_next().is_some() {}
        connections.spawn(work);
    }

    /// Returns the kubelets of the nodes, if any run.
    pub(crate) fn kubelets(&self) -> Option<&Arc<dyn Kubelets>> {
        self.0.kubelets.get()
    }

    /// Ends all watches; requests are still answered.
    pub fn stop(&self) {
        self.0.stopping.cancel();
    }

    pub(crate) fn watch_floor(&self) -> &AtomicU64 {
        &self.0.watch_floor
    }

    pub(crate) fn skew(&self) -> &SkewedClock {
        &self.0.skew
    }

    /// Cancelled when the server stops.
    pub fn stopping(&self) -> CancellationToken {
        self.0.stopping.clone()
    }

    pub(crate) fn with_random<T>(&self, draw: impl FnOnce(&mut RandomSources) -> T) -> T {
        draw(&mut self.0.random.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Locks the allocations of services.
    pub(crate) fn lock_allocations(&self) -> MutexGuard<'_, Allocations> {
        let allocations = self.0.allocations.lock();
        allocations.unwrap_or_else(PoisonError::into_inner)
    }
}
