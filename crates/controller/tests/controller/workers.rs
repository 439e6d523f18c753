//! Number, start and shutdown order of workers and informers.

use std::num::NonZeroUsize;

use kube_test_control_plane::faults::{GatePoint, RequestMatcher};
use kube_test_control_plane::route::Verb;

use crate::World;

/// Resources that the informers cache.
const CACHED: [&str; 4] = [
    "statefulsets",
    "pods",
    "persistentvolumeclaims",
    "controllerrevisions",
];

/// Matches the first write of a new set's sync.
fn first_writes() -> RequestMatcher {
    let creations = RequestMatcher::any().verb(Verb::Create);
    creations.resource("controllerrevisions")
}

#[tokio::test(start_paused = true)]
async fn concurrent_syncs_are_limited_as_configured() {
    let mut world = World::new().await;
    for set in ["a", "b", "c", "d", "e"] {
        world.create_set(set, 1).await;
    }
    let gate = world.plane.server().faults().gate(first_writes());
    let builder = world.builder();
    world.run_built_by(builder.concurrent_syncs(NonZeroUsize::new(3).unwrap()));
    world.rest().await;
    assert_eq!(gate.waiting().len(), 3);
    gate.open();
    world.rest().await;
    assert_eq!(world.pods().await, ["a-0", "b-0", "c-0", "d-0", "e-0"]);
}

#[tokio::test(start_paused = true)]
async fn informers_run_until_the_last_worker_stops() {
    let mut world = World::new().await;
    world.create_set("web", 1).await;
    let faults = world.plane.server().faults().clone();
    let gate = faults.gate_at(GatePoint::AfterCommit, first_writes());
    world.run();
    gate.arrived(1).await;
    world.cancelled.cancel();
    world.rest().await;
    let watched = || {
        let watches = faults.open_watches().into_iter();
        let mut resources: Vec<String> = watches.map(|watch| watch.resource).collect();
        resources.sort();
        resources
    };
    let mut cached = CACHED;
    cached.sort_unstable();
    assert_eq!(watched(), cached, "while a sync is in progress");
    gate.open();
    while let Some(ended) = world.tasks.join_next().await {
        ended.unwrap();
    }
    assert_eq!(watched(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn has_synced_is_true_once_every_cache_is_filled() {
    for late in CACHED {
        let mut world = World::new().await;
        let lists = RequestMatcher::any().verb(Verb::List).resource(late);
        let gate = world.plane.server().faults().gate(lists);
        let controller = world.builder().build().unwrap();
        let synced = controller.has_synced();
        world.run_this(controller);
        world.rest().await;
        assert_eq!(gate.waiting().len(), 1);
        assert!(!synced.get(), "{late} are not listed yet");
        gate.open();
        world.rest().await;
        assert!(synced.get(), "{late} are listed");
    }
}
