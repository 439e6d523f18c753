//! Fake pod control that records its patches.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use kube_apimachinery::object_key::ObjectKey;
use statefulset_client::error::Error;

use super::PodControl;

/// Records patches and fails them on request.
#[derive(Default)]
pub struct FakePodControl {
    patches: Mutex<Vec<(ObjectKey, String)>>,
    failure: Mutex<Option<fn() -> Error>>,
}

impl FakePodControl {
    /// Makes every later patch fail.
    pub fn fail_with(&self, failure: fn() -> Error) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
    }

    /// Returns and clears the recorded patches.
    pub fn take_patches(&self) -> Vec<(ObjectKey, String)> {
        std::mem::take(&mut *self.patches.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl PodControl for FakePodControl {
    async fn patch_pod(&self, pod: &ObjectKey, patch: String) -> Result<(), Error> {
        self.patches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((pod.clone(), patch));
        match *self.failure.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(failure) => Err(failure()),
            None => Ok(()),
        }
    }
}
