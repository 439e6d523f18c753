//! Sets that pod events enqueue.

use std::sync::Arc;

use serde_json::json;
use statefulset_client::cache::informer::EventHandler as _;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::builders::Builder;
use statefulset_controller_util::testing::upstream;

use super::fixtures::{Controller, later, pod};
use crate::stateful_set::stateful_sets_for_pod;

fn foo() -> Builder<StatefulSet> {
    upstream::set(3)
}

/// A set that differs from `foo` only in its name, so it selects the same pods.
fn foo2() -> Builder<StatefulSet> {
    foo().with("metadata.name", "foo2")
}

fn built(pod: &Builder<Pod>) -> Arc<Pod> {
    Arc::new(pod.build())
}

/// Creates a controller with both sets in the cache.
fn with_both() -> Controller {
    Controller::new(&[&foo(), &foo2()])
}

impl Controller {
    fn added(&self, pod: &Builder<Pod>) {
        self.pod_events.on_add(&built(pod), false);
    }

    fn updated(&self, old: &Builder<Pod>, new: &Builder<Pod>) {
        self.pod_events.on_update(&built(old), &built(new));
    }

    fn deleted(&self, pod: &Builder<Pod>, final_state_unknown: bool) {
        self.pod_events.on_delete(&built(pod), final_state_unknown);
    }
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_add_pod() {
    // Upstream's second set has the same name, which makes it the same set.
    let controller = with_both();
    controller.added(&pod(&foo(), 0));
    assert_eq!(controller.take().await, "default/foo");
    controller.added(&pod(&foo2(), 0));
    assert_eq!(controller.take().await, "default/foo2");
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_add_pod_orphan() {
    let foo3 = foo()
        .with("metadata.name", "foo3")
        .with("spec.selector", json!({"matchLabels": {"foo3": "bar"}}));
    let controller = Controller::new(&[&foo(), &foo2(), &foo3]);
    controller.added(&pod(&foo(), 0).orphan());
    assert_eq!(controller.queue.len(), 2);
    assert_eq!(controller.take().await, "default/foo");
    assert_eq!(controller.take().await, "default/foo2");
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_add_pod_no_set() {
    let controller = Controller::uncached(&[]);
    controller.added(&pod(&foo(), 0));
    controller.holds_no_key().await;
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_update_pod() {
    let controller = with_both();
    for (set, key) in [(foo(), "default/foo"), (foo2(), "default/foo2")] {
        let before = pod(&set, 0);
        controller.updated(&before, &later(before.clone()));
        assert_eq!(controller.take().await, key);
    }
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_update_pod_with_no_set() {
    let controller = Controller::uncached(&[]);
    let before = pod(&foo(), 0);
    controller.updated(&before, &later(before.clone()));
    controller.holds_no_key().await;
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_update_pod_with_same_version() {
    let controller = Controller::new(&[&foo()]);
    let pod = pod(&foo(), 0);
    controller.updated(&pod, &pod);
    controller.holds_no_key().await;
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_update_pod_orphan_with_new_labels() {
    let controller = with_both();
    let after = pod(&foo(), 0).orphan();
    let before = later(after.clone()).with("metadata.labels", json!({"foo2": "bar2"}));
    controller.updated(&before, &after);
    assert_eq!(controller.queue.len(), 2);
    assert_eq!(controller.take().await, "default/foo");
    assert_eq!(controller.take().await, "default/foo2");
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_update_pod_change_controller_ref() {
    let controller = with_both();
    let after = pod(&foo(), 0);
    let owner = json!([foo2().build().controller_reference()]);
    let before = later(after.clone()).with("metadata.ownerReferences", owner);
    controller.updated(&before, &after);
    assert_eq!(controller.queue.len(), 2);
    // The pod's former set comes first.
    assert_eq!(controller.take().await, "default/foo2");
    assert_eq!(controller.take().await, "default/foo");
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_update_pod_release() {
    let controller = with_both();
    let before = pod(&foo(), 0);
    controller.updated(&before, &later(before.clone()).orphan());
    assert_eq!(controller.queue.len(), 2);
    // The pod's former set comes first.
    assert_eq!(controller.take().await, "default/foo");
    assert_eq!(controller.take().await, "default/foo2");
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_delete_pod() {
    let controller = with_both();
    controller.deleted(&pod(&foo(), 0), false);
    assert_eq!(controller.take().await, "default/foo");
    controller.deleted(&pod(&foo2(), 0), false);
    assert_eq!(controller.take().await, "default/foo2");
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_delete_pod_orphan() {
    let controller = with_both();
    controller.deleted(&pod(&foo(), 0).orphan(), false);
    assert_eq!(controller.queue.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_delete_pod_tombstone() {
    let controller = Controller::new(&[&foo()]);
    controller.deleted(&pod(&foo(), 0), true);
    assert_eq!(controller.take().await, "default/foo");
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_get_stateful_sets_for_pod() {
    let controller = with_both();
    let selecting = stateful_sets_for_pod(&controller.objects.sets, &pod(&foo(), 0).build());
    let names: Vec<&str> = selecting.iter().map(|set| set.name()).collect();
    assert_eq!(names, ["foo", "foo2"]);
}
