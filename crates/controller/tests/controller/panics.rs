//! A panic of anything that runs ends all of it.

use std::sync::Arc;

use http::Method;
use serde_json::json;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::informer::EventHandler;
use statefulset_client::recorder::{EventRecorder, EventType, ObjectReference};
use statefulset_controller::metrics::ControllerMetrics;
use statefulset_controller::{Informers, StatefulSetController};
use statefulset_controller_util::pod::Pod;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{PODS, Setup};

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

/// What the only task panicked with.
async fn panic_of(tasks: &mut JoinSet<()>) -> &'static str {
    let ended = tasks.join_next().await.unwrap();
    let panic = ended.unwrap_err().into_panic();
    panic.downcast_ref::<&'static str>().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_panics_ends_the_controller_so() {
    let mut setup = Setup::new().await;
    setup.create_set("web", 1).await;
    let mut config = setup.config(FeatureGates::default());
    config.recorder = Arc::new(Panics);
    setup.run_this(StatefulSetController::new(config));
    assert_eq!(panic_of(&mut setup.tasks).await, "no events");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_ends_the_informers_so() {
    let setup = Setup::new().await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    setup.ask(Method::POST, PODS, &pod).await;
    let config = setup.config(FeatureGates::default());
    let mut informers = Informers::new(&config, &ControllerMetrics::default());
    informers.pods.add_handler(Arc::new(Panics));
    let mut tasks = JoinSet::new();
    tasks.spawn(informers.run(CancellationToken::new()));
    assert_eq!(panic_of(&mut tasks).await, "no pods");
}
