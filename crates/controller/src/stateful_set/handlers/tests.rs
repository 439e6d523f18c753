//! Events and the sets that they enqueue.

use serde_json::{Value, json};
use statefulset_client::cache::indexer::CachedObject as _;
use statefulset_client::workqueue::{NoopQueueMetrics, RateLimiter};
use statefulset_controller_util::stateful_set::KIND;
use tokio::time::{Instant, advance};

use super::*;

/// A set in namespace `ns` that selects pods with the label `app: {app}`.
fn set(name: &str, app: &str) -> StatefulSet {
    selecting(name, &json!({"matchLabels": {"app": app}}), 0)
}

fn selecting(name: &str, selector: &Value, min_ready_seconds: i32) -> StatefulSet {
    let json = json!({
        "metadata": {"name": name, "namespace": "ns", "uid": format!("{name}-uid")},
        "spec": {
            "selector": selector,
            "minReadySeconds": min_ready_seconds,
            "template": {"metadata": {}, "spec": {"containers": []}},
        },
    });
    StatefulSet::decode(&json.to_string()).unwrap()
}

/// A pod in namespace `ns` with the label `app: web` and no controller.
fn orphan(resource_version: &str) -> Pod {
    let json = json!({"metadata": {
        "name": "web-0", "namespace": "ns", "uid": "web-0-uid",
        "resourceVersion": resource_version, "labels": {"app": "web"},
    }});
    Pod::decode(&json.to_string()).unwrap()
}

/// The same pod, controlled by a set.
fn owned(resource_version: &str, set: &str) -> Pod {
    let reference = OwnerReference::new_controller("apps/v1", KIND, set, &format!("{set}-uid"));
    Pod {
        controller: Some(Arc::new(reference)),
        ..orphan(resource_version)
    }
}

fn labelled(pod: Pod, labels: Value) -> Pod {
    Pod {
        labels: serde_json::from_value(labels).unwrap(),
        ..pod
    }
}

fn terminating(pod: Pod) -> Pod {
    Pod {
        deletion_timestamp: Some(jiff::Timestamp::UNIX_EPOCH),
        ..pod
    }
}

fn ready(mut pod: Pod) -> Pod {
    pod.readiness.ready = true;
    pod
}

/// The handlers with a queue and a cache of sets.
struct Handlers {
    queue: WorkQueue<ObjectKey>,
    pods: PodHandler,
    sets: SetHandler,
}

fn handlers(cached: impl IntoIterator<Item = StatefulSet>) -> Handlers {
    let sets = Arc::new(Indexer::new());
    for set in cached {
        sets.add(set);
    }
    let queue = WorkQueue::new(RateLimiter::default(), Arc::new(NoopQueueMetrics));
    Handlers {
        pods: PodHandler {
            queue: queue.clone(),
            sets,
        },
        sets: SetHandler {
            queue: queue.clone(),
        },
        queue,
    }
}

impl Handlers {
    fn added(&self, pod: Pod) -> Vec<String> {
        self.pods.on_add(&Arc::new(pod), false);
        self.drain()
    }

    fn updated(&self, old: Pod, new: Pod) -> Vec<String> {
        self.pods.on_update(&Arc::new(old), &Arc::new(new));
        self.drain()
    }

    fn deleted(&self, pod: Pod, final_state_unknown: bool) -> Vec<String> {
        self.pods.on_delete(&Arc::new(pod), final_state_unknown);
        self.drain()
    }

    /// Returns the queued keys in order.
    fn drain(&self) -> Vec<String> {
        let mut keys = Vec::new();
        while !self.queue.is_empty() {
            let key = poll_ready(self.queue.get()).unwrap();
            self.queue.done(&key);
            keys.push(key.to_string());
        }
        keys
    }
}

/// Returns the value of a ready future.
fn poll_ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future
        .as_mut()
        .poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
    {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("not ready"),
    }
}

const NONE: [&str; 0] = [];

#[tokio::test(start_paused = true)]
async fn set_events_enqueue_the_set() {
    let handlers = handlers([]);
    let web = Arc::new(set("web", "web"));
    handlers.sets.on_add(&web, true);
    assert_eq!(handlers.drain(), ["ns/web"]);
    // The same object again, as in a resync.
    handlers.sets.on_update(&web, &web);
    assert_eq!(handlers.drain(), ["ns/web"]);
    for final_state_unknown in [false, true] {
        handlers.sets.on_delete(&web, final_state_unknown);
        assert_eq!(handlers.drain(), ["ns/web"]);
    }
}

#[tokio::test(start_paused = true)]
async fn new_pod_enqueues_its_owner() {
    let handlers = handlers([set("web", "web"), set("other", "web")]);
    assert_eq!(handlers.added(owned("1", "web")), ["ns/web"]);
    assert_eq!(handlers.added(owned("1", "other")), ["ns/other"]);
}

#[tokio::test(start_paused = true)]
async fn orphan_enqueues_only_the_sets_that_select_it() {
    let empty = selecting("empty", &json!({}), 0);
    let missing = selecting("missing", &Value::Null, 0);
    let invalid = json!({"matchExpressions": [{"key": "app", "operator": "Like"}]});
    let invalid = selecting("invalid", &invalid, 0);
    let handlers = handlers([set("db", "db"), set("web", "web"), empty, missing, invalid]);
    assert_eq!(handlers.added(orphan("1")), ["ns/web"]);
    // No labels, another label, another namespace.
    assert_eq!(handlers.added(labelled(orphan("1"), json!({}))), NONE);
    assert_eq!(
        handlers.added(labelled(orphan("1"), json!({"app": "x"}))),
        NONE
    );
    assert_eq!(
        handlers.added(Pod {
            namespace: "elsewhere".into(),
            ..orphan("1")
        }),
        NONE
    );
}

#[tokio::test(start_paused = true)]
async fn orphan_enqueues_every_set_that_selects_it() {
    let handlers = handlers([set("web", "web"), set("also", "web"), set("db", "db")]);
    assert_eq!(handlers.added(orphan("1")), ["ns/also", "ns/web"]);
}

#[tokio::test(start_paused = true)]
async fn unmatched_new_pod_enqueues_no_set() {
    let handlers = handlers([set("db", "db")]);
    assert_eq!(handlers.added(orphan("1")), NONE);
    assert_eq!(handlers.added(owned("1", "web")), NONE);
}

#[tokio::test(start_paused = true)]
async fn terminating_new_pod_counts_as_deleted() {
    let handlers = handlers([set("web", "web")]);
    assert_eq!(handlers.added(terminating(owned("1", "web"))), ["ns/web"]);
    // A terminating orphan affects no set, although the set selects it.
    assert_eq!(handlers.added(terminating(orphan("1"))), NONE);
}

#[tokio::test(start_paused = true)]
async fn reference_matches_by_kind_name_and_uid() {
    let handlers = handlers([set("web", "web")]);
    let with = |change: fn(&mut OwnerReference)| {
        let mut pod = owned("1", "web");
        change(Arc::make_mut(pod.controller.as_mut().unwrap()));
        pod
    };
    assert_eq!(
        handlers.added(with(|reference| reference.kind = "ReplicaSet".into())),
        NONE
    );
    assert_eq!(
        handlers.added(with(|reference| reference.uid = "earlier".into())),
        NONE
    );
    assert_eq!(
        handlers.added(with(|reference| reference.name = "gone".into())),
        NONE
    );
    let other_version = with(|reference| reference.api_version = "apps/v1beta2".into());
    assert_eq!(handlers.added(other_version), ["ns/web"]);
    let elsewhere = Pod {
        namespace: "elsewhere".into(),
        ..owned("1", "web")
    };
    assert_eq!(handlers.added(elsewhere), NONE);
}

#[tokio::test(start_paused = true)]
async fn changed_pod_enqueues_its_set() {
    let handlers = handlers([set("web", "web")]);
    assert_eq!(
        handlers.updated(owned("1", "web"), owned("2", "web")),
        ["ns/web"]
    );
    assert_eq!(
        handlers.updated(owned("2", "web"), terminating(owned("3", "web"))),
        ["ns/web"]
    );
}

#[tokio::test(start_paused = true)]
async fn changed_pod_without_set_enqueues_none() {
    let handlers = handlers([]);
    assert_eq!(handlers.updated(owned("1", "web"), owned("2", "web")), NONE);
    assert_eq!(handlers.updated(owned("1", "web"), orphan("2")), NONE);
}

#[tokio::test(start_paused = true)]
async fn resynced_pod_enqueues_no_set() {
    let handlers = handlers([set("web", "web"), set("other", "web")]);
    // With the same version it is the same object, despite other differences.
    assert_eq!(
        handlers.updated(owned("1", "web"), ready(owned("1", "other"))),
        NONE
    );
}

#[tokio::test(start_paused = true)]
async fn orphan_with_new_labels_enqueues_sets_by_new_labels() {
    let handlers = handlers([set("web", "web"), set("also", "web")]);
    let before = labelled(orphan("1"), json!({"app": "x"}));
    assert_eq!(handlers.updated(before, orphan("2")), ["ns/also", "ns/web"]);
    // The former labels don't count.
    assert_eq!(
        handlers.updated(orphan("2"), labelled(orphan("3"), json!({"app": "x"}))),
        NONE
    );
}

#[tokio::test(start_paused = true)]
async fn orphan_with_same_labels_enqueues_no_set() {
    let handlers = handlers([set("web", "web")]);
    assert_eq!(handlers.updated(orphan("1"), ready(orphan("2"))), NONE);
}

#[tokio::test(start_paused = true)]
async fn controller_change_enqueues_former_set_first() {
    let handlers = handlers([set("web", "web"), set("other", "web")]);
    assert_eq!(
        handlers.updated(owned("1", "other"), owned("2", "web")),
        ["ns/other", "ns/web"]
    );
    // Any difference in upstream is a change.
    let mut before = owned("1", "web");
    Arc::make_mut(before.controller.as_mut().unwrap()).block_owner_deletion = None;
    assert_eq!(handlers.updated(before, owned("2", "web")), ["ns/web"]);
}

#[tokio::test(start_paused = true)]
async fn pod_of_unknown_controller_enqueues_its_former_set() {
    let handlers = handlers([set("web", "web")]);
    assert_eq!(
        handlers.updated(owned("1", "web"), owned("2", "stranger")),
        ["ns/web"]
    );
    assert_eq!(
        handlers.updated(owned("1", "stranger"), owned("2", "web")),
        ["ns/web"]
    );
}

#[tokio::test(start_paused = true)]
async fn released_pod_enqueues_former_and_selecting_sets() {
    let handlers = handlers([set("web", "web"), set("other", "web")]);
    // The former set, and all sets that could adopt the pod.
    assert_eq!(
        handlers.updated(owned("1", "web"), orphan("2")),
        ["ns/web", "ns/other"]
    );
    let unselected = labelled(orphan("2"), json!({"app": "x"}));
    assert_eq!(handlers.updated(owned("1", "web"), unselected), ["ns/web"]);
}

#[tokio::test(start_paused = true)]
async fn adopted_orphan_enqueues_only_its_set() {
    let handlers = handlers([set("web", "web"), set("other", "web")]);
    assert_eq!(handlers.updated(orphan("1"), owned("2", "web")), ["ns/web"]);
}

#[tokio::test(start_paused = true)]
async fn ready_pod_enqueues_its_set_again_once_available() {
    let selector = json!({"matchLabels": {"app": "web"}});
    let handlers = handlers([selecting("web", &selector, 7)]);
    let start = Instant::now();
    assert_eq!(
        handlers.updated(owned("1", "web"), ready(owned("2", "web"))),
        ["ns/web"]
    );
    advance(Duration::from_millis(6999)).await;
    assert_eq!(handlers.drain(), NONE);
    advance(Duration::from_millis(1)).await;
    assert_eq!(handlers.drain(), ["ns/web"]);
    assert_eq!(start.elapsed(), Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn other_pod_changes_enqueue_the_set_once() {
    let selector = json!({"matchLabels": {"app": "web"}});
    let handlers = handlers([selecting("web", &selector, 7), set("other", "web")]);
    let ready_before = ready(owned("1", "web"));
    assert_eq!(
        handlers.updated(ready_before.clone(), ready(owned("2", "web"))),
        ["ns/web"]
    );
    assert_eq!(
        handlers.updated(ready_before, owned("2", "web")),
        ["ns/web"]
    );
    // Without minReadySeconds, the pod is available immediately.
    assert_eq!(
        handlers.updated(owned("1", "other"), ready(owned("2", "other"))),
        ["ns/other"]
    );
    // A pod that is ready when it is added schedules no later sync.
    assert_eq!(handlers.added(ready(owned("1", "web"))), ["ns/web"]);
    advance(Duration::from_secs(3600)).await;
    assert_eq!(handlers.drain(), NONE);
}

#[tokio::test(start_paused = true)]
async fn deleted_pod_enqueues_its_existing_set() {
    let handlers = handlers([set("web", "web"), set("other", "web")]);
    assert_eq!(handlers.deleted(owned("1", "web"), false), ["ns/web"]);
    assert_eq!(handlers.deleted(owned("1", "gone"), false), NONE);
}

#[tokio::test(start_paused = true)]
async fn deleted_orphan_enqueues_no_set() {
    let handlers = handlers([set("web", "web")]);
    assert_eq!(handlers.deleted(orphan("1"), false), NONE);
}

#[tokio::test(start_paused = true)]
async fn pod_missing_in_a_relist_enqueues_its_set() {
    let handlers = handlers([set("web", "web")]);
    assert_eq!(handlers.deleted(owned("1", "web"), true), ["ns/web"]);
}

#[tokio::test(start_paused = true)]
async fn sets_for_pod_are_found_by_selector() {
    let handlers = handlers([set("web", "web"), set("other", "web")]);
    // The selectors decide, not the pod's reference.
    let selecting = stateful_sets_for_pod(&handlers.pods.sets, &owned("1", "web"));
    let names: Vec<_> = selecting.iter().map(|set| set.name()).collect();
    assert_eq!(names, ["other", "web"]);
}

#[tokio::test(start_paused = true)]
async fn repeated_list_of_pods_enqueues_all_sets() {
    let handlers = handlers([set("web", "web"), set("db", "db")]);
    handlers.pods.on_relisted();
    let mut keys = handlers.drain();
    keys.sort();
    assert_eq!(keys, ["ns/db", "ns/web"]);
}
