//! Which events enqueue which sets.

use serde_json::{Value, json};
use statefulset_client::indexer::CachedObject as _;
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
        controller: Some(Box::new(reference)),
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

/// The handlers over a queue and a cache of sets.
struct Setup {
    queue: WorkQueue<ObjectKey>,
    pods: PodHandler,
    sets: SetHandler,
}

fn setup(cached: impl IntoIterator<Item = StatefulSet>) -> Setup {
    let sets = Arc::new(Indexer::new());
    for set in cached {
        sets.add(set);
    }
    let queue = WorkQueue::new(RateLimiter::default(), Arc::new(NoopQueueMetrics));
    Setup {
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

impl Setup {
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

    /// The keys that wait, in order.
    fn drain(&self) -> Vec<String> {
        let mut keys = Vec::new();
        while !self.queue.is_empty() {
            let key = futures_now(self.queue.get()).unwrap();
            self.queue.done(&key);
            keys.push(key.to_string());
        }
        keys
    }
}

/// The value of a future that is ready.
fn futures_now<T>(future: impl Future<Output = T>) -> T {
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
async fn every_event_of_a_set_enqueues_it() {
    let setup = setup([]);
    let web = Arc::new(set("web", "web"));
    setup.sets.on_add(&web, true);
    assert_eq!(setup.drain(), ["ns/web"]);
    // The same object again, as a resync shows it.
    setup.sets.on_update(&web, &web);
    assert_eq!(setup.drain(), ["ns/web"]);
    for final_state_unknown in [false, true] {
        setup.sets.on_delete(&web, final_state_unknown);
        assert_eq!(setup.drain(), ["ns/web"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_pod_enqueues_the_set_that_owns_it() {
    let setup = setup([set("web", "web"), set("other", "web")]);
    assert_eq!(setup.added(owned("1", "web")), ["ns/web"]);
    assert_eq!(setup.added(owned("1", "other")), ["ns/other"]);
}

#[tokio::test(start_paused = true)]
async fn an_orphan_enqueues_the_sets_that_select_it_and_no_others() {
    let empty = selecting("empty", &json!({}), 0);
    let missing = selecting("missing", &Value::Null, 0);
    let invalid = json!({"matchExpressions": [{"key": "app", "operator": "Like"}]});
    let invalid = selecting("invalid", &invalid, 0);
    let setup = setup([set("db", "db"), set("web", "web"), empty, missing, invalid]);
    assert_eq!(setup.added(orphan("1")), ["ns/web"]);
    // No labels, another label, another namespace.
    assert_eq!(setup.added(labelled(orphan("1"), json!({}))), NONE);
    assert_eq!(
        setup.added(labelled(orphan("1"), json!({"app": "x"}))),
        NONE
    );
    assert_eq!(
        setup.added(Pod {
            namespace: "elsewhere".into(),
            ..orphan("1")
        }),
        NONE
    );
}

#[tokio::test(start_paused = true)]
async fn all_sets_that_select_an_orphan_are_enqueued() {
    let setup = setup([set("web", "web"), set("also", "web"), set("db", "db")]);
    assert_eq!(setup.added(orphan("1")), ["ns/also", "ns/web"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_pod_that_concerns_no_set_enqueues_none() {
    let setup = setup([set("db", "db")]);
    assert_eq!(setup.added(orphan("1")), NONE);
    assert_eq!(setup.added(owned("1", "web")), NONE);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_comes_terminating_counts_as_deleted() {
    let setup = setup([set("web", "web")]);
    assert_eq!(setup.added(terminating(owned("1", "web"))), ["ns/web"]);
    // An orphan that goes concerns nobody, although the set selects it.
    assert_eq!(setup.added(terminating(orphan("1"))), NONE);
}

#[tokio::test(start_paused = true)]
async fn a_reference_counts_by_kind_name_and_uid() {
    let setup = setup([set("web", "web")]);
    let with = |change: fn(&mut OwnerReference)| {
        let mut pod = owned("1", "web");
        change(pod.controller.as_mut().unwrap());
        pod
    };
    assert_eq!(
        setup.added(with(|reference| reference.kind = "ReplicaSet".into())),
        NONE
    );
    assert_eq!(
        setup.added(with(|reference| reference.uid = "earlier".into())),
        NONE
    );
    assert_eq!(
        setup.added(with(|reference| reference.name = "gone".into())),
        NONE
    );
    let other_version = with(|reference| reference.api_version = "apps/v1beta2".into());
    assert_eq!(setup.added(other_version), ["ns/web"]);
    let elsewhere = Pod {
        namespace: "elsewhere".into(),
        ..owned("1", "web")
    };
    assert_eq!(setup.added(elsewhere), NONE);
}

#[tokio::test(start_paused = true)]
async fn a_changed_or_terminating_pod_enqueues_its_set() {
    let setup = setup([set("web", "web")]);
    assert_eq!(
        setup.updated(owned("1", "web"), owned("2", "web")),
        ["ns/web"]
    );
    assert_eq!(
        setup.updated(owned("2", "web"), terminating(owned("3", "web"))),
        ["ns/web"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_changed_pod_of_no_set_enqueues_none() {
    let setup = setup([]);
    assert_eq!(setup.updated(owned("1", "web"), owned("2", "web")), NONE);
    assert_eq!(setup.updated(owned("1", "web"), orphan("2")), NONE);
}

#[tokio::test(start_paused = true)]
async fn a_pod_shown_again_enqueues_nothing_whatever_differs() {
    let setup = setup([set("web", "web"), set("other", "web")]);
    // Whatever differs otherwise, it is the same object.
    assert_eq!(
        setup.updated(owned("1", "web"), ready(owned("1", "other"))),
        NONE
    );
}

#[tokio::test(start_paused = true)]
async fn the_labels_that_an_orphan_has_now_decide_which_sets_are_enqueued() {
    let setup = setup([set("web", "web"), set("also", "web")]);
    let before = labelled(orphan("1"), json!({"app": "x"}));
    assert_eq!(setup.updated(before, orphan("2")), ["ns/also", "ns/web"]);
    // The labels that it had don't count.
    assert_eq!(
        setup.updated(orphan("2"), labelled(orphan("3"), json!({"app": "x"}))),
        NONE
    );
}

#[tokio::test(start_paused = true)]
async fn an_orphan_that_changes_in_other_ways_concerns_nobody() {
    let setup = setup([set("web", "web")]);
    assert_eq!(setup.updated(orphan("1"), ready(orphan("2"))), NONE);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_changes_hands_enqueues_both_sets_the_former_first() {
    let setup = setup([set("web", "web"), set("other", "web")]);
    assert_eq!(
        setup.updated(owned("1", "other"), owned("2", "web")),
        ["ns/other", "ns/web"]
    );
    // Any difference in the reference is a change.
    let mut before = owned("1", "web");
    before.controller.as_mut().unwrap().block_owner_deletion = None;
    assert_eq!(setup.updated(before, owned("2", "web")), ["ns/web"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_goes_to_a_stranger_still_concerns_the_set_that_had_it() {
    let setup = setup([set("web", "web")]);
    assert_eq!(
        setup.updated(owned("1", "web"), owned("2", "stranger")),
        ["ns/web"]
    );
    assert_eq!(
        setup.updated(owned("1", "stranger"), owned("2", "web")),
        ["ns/web"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_released_pod_enqueues_the_set_that_had_it_and_all_that_may_adopt_it() {
    let setup = setup([set("web", "web"), set("other", "web")]);
    // The set that had it, and all that could adopt it.
    assert_eq!(
        setup.updated(owned("1", "web"), orphan("2")),
        ["ns/web", "ns/other"]
    );
    let unselected = labelled(orphan("2"), json!({"app": "x"}));
    assert_eq!(setup.updated(owned("1", "web"), unselected), ["ns/web"]);
}

#[tokio::test(start_paused = true)]
async fn an_adopted_orphan_concerns_its_set_alone() {
    let setup = setup([set("web", "web"), set("other", "web")]);
    assert_eq!(setup.updated(orphan("1"), owned("2", "web")), ["ns/web"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_gets_ready_enqueues_its_set_again_when_it_becomes_available() {
    let selector = json!({"matchLabels": {"app": "web"}});
    let setup = setup([selecting("web", &selector, 7)]);
    let start = Instant::now();
    assert_eq!(
        setup.updated(owned("1", "web"), ready(owned("2", "web"))),
        ["ns/web"]
    );
    advance(Duration::from_millis(6999)).await;
    assert_eq!(setup.drain(), NONE);
    advance(Duration::from_millis(1)).await;
    assert_eq!(setup.drain(), ["ns/web"]);
    assert_eq!(start.elapsed(), Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn no_other_change_of_a_pod_enqueues_its_set_again() {
    let selector = json!({"matchLabels": {"app": "web"}});
    let setup = setup([selecting("web", &selector, 7), set("other", "web")]);
    let ready_before = ready(owned("1", "web"));
    assert_eq!(
        setup.updated(ready_before.clone(), ready(owned("2", "web"))),
        ["ns/web"]
    );
    assert_eq!(setup.updated(ready_before, owned("2", "web")), ["ns/web"]);
    // A set without minReadySeconds has the moment already.
    assert_eq!(
        setup.updated(owned("1", "other"), ready(owned("2", "other"))),
        ["ns/other"]
    );
    // A pod that comes ready has no moment of its own.
    assert_eq!(setup.added(ready(owned("1", "web"))), ["ns/web"]);
    advance(Duration::from_secs(3600)).await;
    assert_eq!(setup.drain(), NONE);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_enqueues_its_set_if_that_is_still_there() {
    let setup = setup([set("web", "web"), set("other", "web")]);
    assert_eq!(setup.deleted(owned("1", "web"), false), ["ns/web"]);
    assert_eq!(setup.deleted(owned("1", "gone"), false), NONE);
}

#[tokio::test(start_paused = true)]
async fn an_orphan_that_is_gone_enqueues_nothing() {
    let setup = setup([set("web", "web")]);
    assert_eq!(setup.deleted(orphan("1"), false), NONE);
}

#[tokio::test(start_paused = true)]
async fn a_pod_found_gone_by_a_new_list_enqueues_its_set() {
    let setup = setup([set("web", "web")]);
    assert_eq!(setup.deleted(owned("1", "web"), true), ["ns/web"]);
}

#[tokio::test(start_paused = true)]
async fn the_selectors_decide_which_sets_an_orphan_concerns() {
    let setup = setup([set("web", "web"), set("other", "web")]);
    // The selectors decide, not the reference that the pod has.
    let selecting = stateful_sets_for_pod(&setup.pods.sets, &owned("1", "web"));
    let names: Vec<_> = selecting.iter().map(|set| set.name()).collect();
    assert_eq!(names, ["other", "web"]);
}
