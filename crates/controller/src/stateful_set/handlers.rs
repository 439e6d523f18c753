//! Event handlers, from watch events to queue keys. Revisions have no handler: their changes never
//! enqueue a set. A claim enqueues a set only if the set waits for its removal or its growth.

use std::sync::Arc;
use std::time::Duration;

use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::owner_reference::OwnerReference;
use statefulset_client::cache::indexer::Indexer;
use statefulset_client::cache::informer::EventHandler;
use statefulset_client::workqueue::WorkQueue;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;

use super::claim_waits::ClaimWaits;
use super::resolve::{resolve_controller_ref, stateful_sets_for_pod};

#[cfg(test)]
mod tests;

/// Enqueues a set on any change, including its status.
pub(crate) struct SetHandler {
    pub(crate) queue: WorkQueue<ObjectKey>,
}

impl EventHandler<StatefulSet> for SetHandler {
    fn on_add(&self, set: &Arc<StatefulSet>, _in_initial_list: bool) {
        self.queue.add(set.key());
    }

    fn on_update(&self, _old: &Arc<StatefulSet>, new: &Arc<StatefulSet>) {
        self.queue.add(new.key());
    }

    fn on_delete(&self, set: &Arc<StatefulSet>, _final_state_unknown: bool) {
        self.queue.add(set.key());
    }
}

/// Enqueues the set that waits for a removed or a growing claim. Upstream has no such handler: there the set
/// waits until its next event or resync.
pub(crate) struct ClaimHandler {
    pub(crate) queue: WorkQueue<ObjectKey>,
    pub(crate) waits: Arc<ClaimWaits>,
}

impl EventHandler<Claim> for ClaimHandler {
    fn on_add(&self, _claim: &Arc<Claim>, _in_initial_list: bool) {}

    fn on_update(&self, old: &Arc<Claim>, new: &Arc<Claim>) {
        // A list may show only the claim's successor.
        if old.uid != new.uid {
            self.on_delete(old, true);
        } else if old.resource_version != new.resource_version
            && let Some(set) = self.waits.take_changed(&new.key())
        {
            self.queue.add(set);
        }
    }

    fn on_delete(&self, claim: &Arc<Claim>, _final_state_unknown: bool) {
        let key = claim.key();
        let sets = [self.waits.take(&key), self.waits.take_changed(&key)];
        for set in sets.into_iter().flatten() {
            self.queue.add(set);
        }
    }
}

/// Enqueues the sets affected by a pod's change: its controller's, or those that select it.
pub struct PodHandler {
    /// Receives the keys of the sets.
    pub queue: WorkQueue<ObjectKey>,
    /// The cache of sets.
    pub sets: Arc<Indexer<StatefulSet>>,
}

impl PodHandler {
    /// Enqueues and returns the set that a controller reference names.
    fn enqueue_controller(
        &self,
        namespace: &str,
        reference: &OwnerReference,
    ) -> Option<Arc<StatefulSet>> {
        let set = resolve_controller_ref(&self.sets, namespace, reference)?;
        self.queue.add(set.key());
        Some(set)
    }

    fn enqueue_selecting(&self, pod: &Pod) {
        for set in stateful_sets_for_pod(&self.sets, pod) {
            self.queue.add(set.key());
        }
    }

    /// Upstream: `deletePod`.
    fn delete_pod(&self, pod: &Pod) {
        if let Some(reference) = &pod.controller {
            self.enqueue_controller(&pod.namespace, reference);
        }
    }
}

impl EventHandler<Pod> for PodHandler {
    /// Upstream: `addPod`, as the event handler.
    fn on_add(&self, pod: &Arc<Pod>, _in_initial_list: bool) {
        match &pod.controller {
            _ if pod.is_terminating() => self.delete_pod(pod),
            Some(reference) => drop(self.enqueue_controller(&pod.namespace, reference)),
            None => self.enqueue_selecting(pod),
        }
    }

    /// Upstream: `updatePod`, as the event handler.
    fn on_update(&self, old: &Arc<Pod>, new: &Arc<Pod>) {
        if old.resource_version == new.resource_version {
            // A resync, without a change.
            return;
        }
        let controller_changed = old.controller != new.controller;
        if let (true, Some(reference)) = (controller_changed, &old.controller) {
            self.enqueue_controller(&old.namespace, reference);
        }
        let Some(reference) = &new.controller else {
            if controller_changed || old.labels != new.labels {
                self.enqueue_selecting(new);
            }
            return;
        };
        let Some(set) = self.enqueue_controller(&new.namespace, reference) else {
            return;
        };
        let min_ready_seconds = u64::try_from(set.spec.min_ready_seconds).unwrap_or(0);
        if !old.readiness.ready && new.readiness.ready && min_ready_seconds > 0 {
            // No event reports when the pod becomes available.
            self.queue
                .add_after(set.key(), Duration::from_secs(min_ready_seconds));
        }
    }

    fn on_delete(&self, pod: &Arc<Pod>, _final_state_unknown: bool) {
        self.delete_pod(pod);
    }

    /// A set may wait for the event of a pod that came and went before the list.
    fn on_relisted(&self) {
        for set in self.sets.list() {
            self.queue.add(set.key());
        }
    }
}
