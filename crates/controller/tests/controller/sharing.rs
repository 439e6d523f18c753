//! Shared informers that outlive the controller.

use std::sync::{Arc, Mutex};

use http::Method;
use kube_test_control_plane::faults::{RequestMatcher, View, ViewRule};
use kube_test_control_plane::route::Verb;
use serde_json::{Value, json};
use statefulset_client::cache::indexer::Indexer;
use statefulset_client::cache::informer::EventHandler;
use statefulset_controller::{RunError, StatefulSetController};
use statefulset_controller_util::consistency::Caches;
use statefulset_controller_util::pod::Pod;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{PODS, SETS, World};

/// Another controller of the process, which records created and deleted pods.
#[derive(Default)]
struct Seen(Mutex<Vec<String>>);

impl Seen {
    /// Returns the records since the last call, sorted.
    fn take(&self) -> Vec<String> {
        let mut seen = std::mem::take(&mut *self.0.lock().unwrap());
        seen.sort();
        seen
    }
}

impl EventHandler<Pod> for Seen {
    fn on_add(&self, pod: &Arc<Pod>, _: bool) {
        self.0.lock().unwrap().push(format!("+{}", pod.name));
    }

    fn on_update(&self, _: &Arc<Pod>, _: &Arc<Pod>) {}

    fn on_delete(&self, pod: &Arc<Pod>, _: bool) {
        self.0.lock().unwrap().push(format!("-{}", pod.name));
    }
}

/// Running informers with their users.
struct Shared {
    seen: Arc<Seen>,
    pods: Arc<Indexer<Pod>>,
    controller: StatefulSetController,
    /// Runs the informers until it is dropped.
    informers: JoinSet<()>,
}

impl Shared {
    fn new(world: &World) -> Self {
        let builder = world.builder();
        let mut informers = builder.make_informers().unwrap();
        let seen = Arc::new(Seen::default());
        informers.pods.add_handler(Arc::<Seen>::clone(&seen));
        let pods = informers.pods.indexer();
        let controller = builder.build_with_informers(&mut informers).unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { informers.run(CancellationToken::new()).await.unwrap() });
        Self {
            seen,
            pods,
            controller,
            informers: tasks,
        }
    }
}

/// Counts the requests for pods from clients other than the test.
fn count(world: &World, verb: Verb) -> usize {
    let audit = world.plane.server().audit();
    let matching = audit.matching(|entry| {
        entry.resource == "pods" && entry.user_agent != "test" && entry.verb == verb
    });
    matching.len()
}

#[tokio::test(start_paused = true)]
async fn informers_are_shared_before_and_after_the_controller_runs() {
    let mut world = World::new().await;
    let stranger = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    world.ask(Method::POST, PODS, &stranger).await;
    world.create_set("web", 2).await;
    let Shared {
        seen,
        pods,
        controller,
        informers: _informers,
    } = Shared::new(&world);
    let synced = controller.has_synced();
    assert!(!synced.get());
    world.rest().await;
    assert!(synced.get());
    assert_eq!(seen.take(), ["+stranger"]);
    assert_eq!(world.pods().await, ["stranger"], "no worker runs yet");
    assert_eq!(count(&world, Verb::List), 1);

    world.run_this(controller);
    world.rest().await;
    assert_eq!(world.pods().await, ["stranger", "web-0", "web-1"]);
    assert_eq!(seen.take(), ["+web-0", "+web-1"]);
    assert_eq!(pods.len(), 3);
    assert_eq!(
        (count(&world, Verb::List), count(&world, Verb::Watch)),
        (2, 2),
        "all share one list and watch of pods, and the controller's start lists again"
    );

    world.end().await;
    let path = format!("{PODS}/web-1");
    world.ask(Method::DELETE, &path, &json!({})).await;
    world.rest().await;
    assert_eq!(seen.take(), ["-web-1"]);
    assert_eq!(world.pods().await, ["stranger", "web-0"]);
}

#[tokio::test(start_paused = true)]
async fn new_leader_sees_earlier_writes_before_it_syncs() {
    let mut world = World::new().await;
    world.create_set("web", 2).await;
    let shared = Shared::new(&world);
    world.rest().await;
    // From now on, watches show no changes.
    let list = world.ask(Method::GET, PODS, &Value::Null).await;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let frozen = View::FrozenAt(version.parse().unwrap());
    let faults = world.plane.server().faults();
    faults.add_view(ViewRule::new(RequestMatcher::any(), frozen));

    world.run();
    world.rest().await;
    world.end().await;
    assert_eq!(world.pods().await, ["web-0", "web-1"]);
    assert!(shared.pods.is_empty());
    assert_eq!(count(&world, Verb::Create), 2);

    world.cancelled = CancellationToken::new();
    world.run_this(shared.controller);
    world.rest().await;
    assert_eq!(shared.pods.len(), 2);
    assert_eq!(
        count(&world, Verb::Create),
        2,
        "the earlier leader's pods are not created again"
    );
}

/// Returns a text without repetitions.
fn noise(len: usize) -> String {
    let mut state = 1_u64;
    let letter = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(b'a' + u8::try_from((state >> 40) % 26).unwrap())
    };
    std::iter::repeat_with(letter).take(len).collect()
}

#[tokio::test(start_paused = true)]
async fn set_and_revision_share_a_large_template() {
    let mut world = World::new().await;
    world.create_set("web", 0).await;
    let shared_bytes = |caches: &Caches| {
        let set = caches.sets.get("default", "web").unwrap();
        let revisions = caches.revisions.list();
        let data = revisions.iter().map(|revision| &revision.data);
        let shared = data.map(|data| data.bytes_shared_with(set.spec_text()));
        shared.max().unwrap()
    };
    let run = |world: &mut World| {
        let builder = world.builder();
        let mut informers = builder.make_informers().unwrap();
        let caches = informers.caches();
        let controller = builder.build_with_informers(&mut informers).unwrap();
        let cancelled = world.cancelled.clone();
        world
            .tasks
            .spawn(async move { informers.run(cancelled).await.unwrap() });
        world.run_this(controller);
        caches
    };

    // The large template arrives in a watch.
    let caches = run(&mut world);
    world.rest().await;
    let path = format!("{SETS}/web");
    let mut set = world.ask(Method::GET, &path, &Value::Null).await;
    set["spec"]["template"]["metadata"]["annotations"] = json!({"noise": noise(200_000)});
    world.ask(Method::PUT, &path, &set).await;
    world.rest().await;
    assert!(shared_bytes(&caches) > 180_000);

    // The large template arrives in a list.
    world.end().await;
    world.cancelled = CancellationToken::new();
    let caches = run(&mut world);
    world.rest().await;
    assert!(shared_bytes(&caches) > 180_000);
}

#[tokio::test(start_paused = true)]
async fn controller_stops_without_its_informers() {
    let world = World::new().await;
    world.create_set("web", 1).await;
    for runs_before in [true, false] {
        let mut shared = Shared::new(&world);
        if runs_before {
            world.rest().await;
        } else {
            shared.informers.shutdown().await;
        }
        let running = shared.controller.run(std::future::pending());
        let ending = async {
            world.rest().await;
            shared.informers.shutdown().await;
        };
        let (ended, ()) = tokio::join!(running, ending);
        assert!(matches!(ended, Err(RunError::InformerEnded)), "{ended:?}");
    }
    assert_eq!(world.pods().await, ["web-0"]);
}
