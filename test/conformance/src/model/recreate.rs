//! The strategy `Recreate` of 1.37: deletion of all old pods before any other step.

use serde_json::Value;

use super::failure::Failure;
use super::object::{is_deleting, label};
use super::set::{REVISION, is_created};
use super::{Step, Sync};

/// Size of the largest batch.
const BATCH_MAX: usize = 500;

impl Sync {
    /// Returns true if the set has the strategy, and its gate is on.
    pub(super) fn recreates(&self) -> bool {
        self.recreate_gate && self.set.strategy() == "Recreate"
    }

    /// From 1.37 on, a set with the strategy fails without its gate.
    pub(super) fn refuse_recreate(&mut self) -> Result<(), Failure> {
        if self.minor < 37 || self.recreate_gate || self.set.strategy() != "Recreate" {
            return Ok(());
        }
        let message = format!(
            "statefulset {}/{} uses Recreate strategy but feature gate \
             StatefulSetRecreateStrategy is disabled",
            self.set.namespace, self.set.name
        );
        self.events
            .push(format!("Warning UnknownStrategy {message}"));
        Err(Failure::new(message))
    }

    /// Deletes the old pods in batches, under any policy. `Exit` means that an old pod existed.
    pub(super) fn delete_old_pods(
        &mut self,
        replicas: &[Value],
        condemned: &[Value],
        update: &str,
    ) -> Result<Step, Failure> {
        let pods: Vec<&Value> = replicas.iter().chain(condemned).collect();
        let is_old = |pod: &Value| is_created(pod) && label(pod, REVISION) != update;
        let Some(_) = pods.iter().find(|pod| is_old(pod)) else {
            return Ok(Step::Continue);
        };
        self.release_kept_claims(replicas, condemned)?;
        let (mut start, mut size) = (0, 1);
        while start < pods.len() {
            let end = (start + size).min(pods.len());
            let batch: Vec<usize> = (start..end).filter(|at| is_old(pods[*at])).collect();
            self.in_parallel(&batch, |sync, at| {
                sync.delete_old_pod(pods[at], at < replicas.len())
            })?;
            (start, size) = (end, (2 * size).min(BATCH_MAX));
        }
        Ok(Step::Exit)
    }

    fn delete_old_pod(&mut self, pod: &Value, is_wanted: bool) -> Result<(), Failure> {
        if is_deleting(pod) {
            return Ok(());
        }
        if is_wanted {
            self.take_unseen_claims_from(pod)?;
            self.delete_pod(pod)
        } else {
            self.delete_condemned(pod)
        }
    }
}
