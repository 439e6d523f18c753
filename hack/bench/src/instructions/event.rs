//! A pod's event, from the decoded pod to the queue.

use std::sync::Arc;

use statefulset_client::cache::indexer::{CachedObject as _, Indexer};
use statefulset_client::cache::informer::EventHandler as _;
use statefulset_client::workqueue::{NoopQueueMetrics, RateLimiter, WorkQueue};
use statefulset_controller::PodHandler;
use statefulset_controller_util::pod::Pod;

use super::settings::{REPETITIONS, runtime};
use crate::cluster::{PODS_PER_SET, Recorded, SetName, filled, renamed_pod, renamed_set};

/// Returns the event of a new pod that a set selects and that has no controller. Besides the set, the
/// caches hold this number of pods, with their sets, each in a separate namespace.
pub(super) fn orphan(others: usize) -> anyhow::Result<Box<dyn FnMut() -> bool>> {
    let recorded = Recorded::read()?;
    let set = recorded.set_of(PODS_PER_SET)?;
    let name = SetName {
        name: set.name().to_owned(),
        uid: set.uid().to_owned(),
    };
    let orphan = |ordinal| {
        let pod = Pod::decode(&recorded.pod_json(&name, ordinal, ordinal))?;
        anyhow::Ok(Arc::new(Pod {
            controller: None,
            ..pod
        }))
    };
    // Each repetition adds another one.
    let events = 0..2 * usize::try_from(REPETITIONS)?;
    let events: Vec<Arc<Pod>> = events.map(orphan).collect::<Result<_, _>>()?;
    let mut events = events.into_iter();
    let first = Pod::decode(&recorded.pod_json(&name, 0, 0))?;
    let namespace = |number: usize| format!("namespace-{number}").into_boxed_str();
    let pods: Arc<Indexer<Pod>> = filled(
        (0..others)
            .map(|number| Pod {
                namespace: namespace(number / PODS_PER_SET),
                ..renamed_pod(&first, number)
            })
            .collect(),
    );
    let mut sets = vec![set.clone()];
    for number in 0..others.div_ceil(PODS_PER_SET) {
        let mut other = renamed_set(&set, &SetName::numbered(number));
        Arc::make_mut(&mut other.metadata).namespace = namespace(number);
        sets.push(other);
    }
    let (runtime, key) = (runtime()?, set.key());
    let queue = WorkQueue::new(RateLimiter::default(), Arc::new(NoopQueueMetrics));
    let handler = PodHandler {
        queue: queue.clone(),
        sets: filled(sets),
    };
    Ok(Box::new(move || {
        let Some(pod) = events.next() else {
            return false;
        };
        pods.add(Arc::clone(&pod));
        handler.on_add(&pod, false);
        let enqueued = runtime.block_on(queue.get());
        enqueued.is_some_and(|enqueued| {
            queue.done(&enqueued);
            enqueued == key && queue.is_empty()
        })
    }))
}
