//! The counters of a status, always recounted, never stepped.

use jiff::Timestamp;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{StatefulSet, StatefulSetStatus};

#[cfg(test)]
mod tests;

/// Counts `pods` into `status`. Pods on their way out count as existing, ready and available, but
/// for no revision.
///
/// Upstream: `updateStatus`.
pub(crate) fn count_pods<'a>(
    status: &mut StatefulSetStatus,
    set: &StatefulSet,
    pods: impl IntoIterator<Item = &'a Pod>,
    now: Timestamp,
) {
    status.replicas = 0;
    status.ready_replicas = 0;
    status.available_replicas = 0;
    status.current_replicas = 0;
    status.updated_replicas = 0;
    for pod in pods.into_iter().filter(|pod| pod.is_created()) {
        status.replicas += 1;
        if pod.is_running_and_ready() {
            status.ready_replicas += 1;
            if pod.is_available(set.spec.min_ready_seconds, now) {
                status.available_replicas += 1;
            }
        }
        if !pod.is_terminating() {
            if *pod.revision() == *status.current_revision {
                status.current_replicas += 1;
            }
            if *pod.revision() == *status.update_revision {
                status.updated_replicas += 1;
            }
        }
    }
}
