//! Panics of syncs and of handlers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;
use serde_json::json;
use statefulset_client::cache::informer::EventHandler;
use statefulset_client::fake::CapturedLog;
use statefulset_client::recorder::{EventRecorder, EventType, ObjectReference};
use statefulset_controller::metrics::{ControllerMetrics, SetMetrics};
use statefulset_controller_util::pod::Pod;
use tokio_util::sync::CancellationToken;
use tracing::Level;

use crate::{PODS, World};

struct Panics;

impl EventRecorder for Panics {
    fn event(&self, _: &ObjectReference, _: EventType, _: &str, _: &str) {
        panic!("no events");
    }
}

impl EventHandler<Pod> for Panics {
    fn on_add(&self, _: &Arc<Pod>, _: bool) {
        panic!("no pods");
    }

    fn on_update(&self, _: &Arc<Pod>, _: &Arc<Pod>) {}

    fn on_delete(&self, _: &Arc<Pod>, _: bool) {}
}

/// Counts panics.
#[derive(Default)]
struct Count(AtomicUsize);

impl SetMetrics for Count {
    fn sync_panicked(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn panic_in_a_sync_fails_only_that_set() {
    let log = CapturedLog::at(Level::ERROR);
    let mut world = World::new().await;
    world.create_set("web", 2).await;
    let count = Arc::new(Count::default());
    let sets: Arc<dyn SetMetrics> = Arc::clone(&count) as _;
    let metrics = ControllerMetrics::default().sets(sets);
    let builder = world.builder().recorder(Arc::new(Panics));
    world.run_built_by(builder.metrics(metrics));
    // Each sync panics after it has created a pod, and the next one continues.
    world.rest().await;
    assert_eq!(world.pods().await, ["web-0", "web-1"]);
    assert!(
        world.tasks.try_join_next().is_none(),
        "the controller ended"
    );
    assert_eq!(count.0.load(Ordering::Relaxed), 2);
    let log = log.take();
    assert_eq!(log.len(), 1, "{log:#?}");
    let expected = "the sync panicked: no events; report this as a bug";
    assert!(log[0].contains(expected), "{log:#?}");
}

#[tokio::test(start_paused = true)]
async fn panic_in_a_handler_stops_the_informers() {
    let world = World::new().await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    world.ask(Method::POST, PODS, &pod).await;
    let mut informers = world.builder().make_informers().unwrap();
    informers.pods.add_handler(Arc::new(Panics));
    let ended = informers.run(CancellationToken::new()).await;
    let expected = "a task of the controller panicked: no pods; report this as a bug";
    assert_eq!(ended.unwrap_err().to_string(), expected);
}
