//! Reads and writes of a set's claims.

use std::sync::Arc;

use statefulset_client::error::Error as ApiError;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::consistency::TrackedResource::PersistentVolumeClaims;
use statefulset_controller_util::live::Live;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::tracked_client::Timing;

use super::object_manager::ObjectManager;
use crate::error::Error;

/// Access to the claims of a set.
#[derive(Clone, Copy)]
pub struct SetClaims<'a> {
    pub(super) objects: &'a dyn ObjectManager,
    pub(super) set: &'a StatefulSet,
}

impl SetClaims<'_> {
    /// Returns a claim of the set's namespace from the cache.
    ///
    /// # Errors
    ///
    /// The cache fails to look it up.
    pub fn cached(self, name: &str) -> Result<Option<Arc<Claim>>, Error> {
        let cached = self.objects.get_claim(self.set.namespace(), name);
        cached.map_err(|error| Error::claim(error, format!("could not look up claim {name}")))
    }

    /// Reads a claim live; `None` if it no longer exists.
    ///
    /// # Errors
    ///
    /// The API server rejects the request or can't be reached.
    pub async fn read_live(self, claim: &Claim) -> Result<Option<Live<Claim>>, ApiError> {
        let live = self.objects.read_claim(&claim.namespace, &claim.name);
        match live.await {
            Ok(live) => Ok(Some(live).filter(|live| live.object.uid == claim.uid)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a claim that was read live, unless it has changed since.
    ///
    /// # Errors
    ///
    /// The API server rejects the request or can't be reached.
    pub async fn write_live(self, claim: Live<Claim>) -> Result<(), ApiError> {
        let written = self.objects.update_claim(self.set, claim, Timing::Queued);
        written.await
    }

    /// Reads a claim live, for an update of its owners.
    pub(super) async fn read_same(self, claim: &Claim) -> Result<Live<Claim>, Error> {
        let live = self.objects.read_claim(&claim.namespace, &claim.name);
        let live = live.await;
        live.and_then(|live| live.with_uid(&claim.uid, PersistentVolumeClaims, "claim"))
            .map_err(|error| Error::claim_update_failed(&claim.name, error))
    }

    /// Writes the owners of a claim that was read live.
    pub(super) async fn write_owners(self, claim: Live<Claim>) -> Result<(), Error> {
        let name = claim.object.name.clone();
        let written = self.write_live(claim).await;
        written.map_err(|error| Error::claim_update_failed(&name, error))
    }
}
