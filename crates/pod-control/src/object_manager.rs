//! Access to pods, claims and the live set.

mod real;

use std::sync::Arc;

use async_trait::async_trait;
use statefulset_client::error::Error;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::controller_ref_manager::SetReader;
use statefulset_controller_util::live::Live;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;

use crate::stateful_set_utils::{NewClaim, NewPod};

pub use real::RealObjectManager;

/// Timing of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Waits for the client's rate limit, and is sent again if the server asks for it.
    Queued,
    /// Does neither, because it depends on a live read of the set just before it.
    AtOnce,
}

/// Reads and writes a set's dependencies. `get_…` reads a cache, `read_…` the API server.
///
/// Upstream: `StatefulPodControlObjectManager`.
#[async_trait]
pub trait ObjectManager: SetReader {
    /// Creates a pod and returns the stored pod; `None` if the response can't be decoded.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport.
    async fn create_pod(&self, set: &StatefulSet, pod: &NewPod) -> Result<Option<Arc<Pod>>, Error>;

    /// Reads a pod live.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport.
    async fn read_pod(&self, namespace: &str, name: &str) -> Result<Live<Pod>, Error>;

    /// Writes a live pod with its resource version.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport.
    async fn update_pod(&self, set: &StatefulSet, pod: Live<Pod>) -> Result<(), Error>;

    /// Deletes a pod if its uid is unchanged.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport; a conflict if the pod was recreated.
    async fn delete_pod(&self, set: &StatefulSet, pod: &Pod, timing: Timing) -> Result<(), Error>;

    /// Creates a claim.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport.
    async fn create_claim(&self, set: &StatefulSet, claim: &NewClaim) -> Result<(), Error>;

    /// Returns a claim from the cache.
    ///
    /// # Errors
    ///
    /// The cache fails.
    fn get_claim(&self, namespace: &str, name: &str) -> Result<Option<Arc<Claim>>, Error>;

    /// Reads a claim live.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport.
    async fn read_claim(&self, namespace: &str, name: &str) -> Result<Live<Claim>, Error>;

    /// Writes a live claim with its resource version.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport.
    async fn update_claim(
        &self,
        set: &StatefulSet,
        claim: Live<Claim>,
        timing: Timing,
    ) -> Result<(), Error>;
}

#[cfg(any(test, feature = "testing"))]
mockall::mock! {
    /// A mock of [`ObjectManager`].
    pub ObjectManager {}

    #[async_trait]
    impl SetReader for ObjectManager {
        async fn read_stateful_set(
            &self,
            key: &kube_apimachinery::object_key::ObjectKey,
        ) -> Result<StatefulSet, Error>;
    }

    #[async_trait]
    impl ObjectManager for ObjectManager {
        async fn create_pod(
            &self,
            set: &StatefulSet,
            pod: &NewPod,
        ) -> Result<Option<Arc<Pod>>, Error>;
        async fn read_pod(&self, namespace: &str, name: &str) -> Result<Live<Pod>, Error>;
        async fn update_pod(&self, set: &StatefulSet, pod: Live<Pod>) -> Result<(), Error>;
        async fn delete_pod(
            &self,
            set: &StatefulSet,
            pod: &Pod,
            timing: Timing,
        ) -> Result<(), Error>;
        async fn create_claim(&self, set: &StatefulSet, claim: &NewClaim) -> Result<(), Error>;
        fn get_claim(&self, namespace: &str, name: &str) -> Result<Option<Arc<Claim>>, Error>;
        async fn read_claim(&self, namespace: &str, name: &str) -> Result<Live<Claim>, Error>;
        async fn update_claim(
            &self,
            set: &StatefulSet,
            claim: Live<Claim>,
            timing: Timing,
        ) -> Result<(), Error>;
    }
}
