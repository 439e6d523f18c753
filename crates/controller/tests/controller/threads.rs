//! Threads of long syncs.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use statefulset_client::recorder::{EventRecorder, EventType, ObjectReference};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::{SETS, World};

/// Blocks a sync's thread until another task has run.
struct Holds {
    began: UnboundedSender<()>,
    other_had_a_turn: Mutex<mpsc::Receiver<()>>,
    ended: UnboundedSender<bool>,
}

impl EventRecorder for Holds {
    fn event(&self, _: &ObjectReference, _: EventType, _: &str, _: &str) {
        self.began.send(()).unwrap();
        let turn = self.other_had_a_turn.lock().unwrap();
        let had_a_turn = turn.recv_timeout(Duration::from_secs(20)).is_ok();
        self.ended.send(had_a_turn).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn other_tasks_run_during_a_large_sync() {
    let mut world = World::new().await;
    world.create_set("web", 0).await;
    let path = format!("{SETS}/web");
    let mut set = world.ask(Method::GET, &path, &Value::Null).await;
    set["spec"]["replicas"] = 1.into();
    set["spec"]["template"]["metadata"]["annotations"] = json!({"note": "x".repeat(100_000)});
    world.ask(Method::PUT, &path, &set).await;

    let (began, mut has_begun) = unbounded_channel();
    let (turn, other_had_a_turn) = mpsc::channel();
    let (ended, mut has_ended) = unbounded_channel();
    let recorder = Arc::new(Holds {
        began,
        other_had_a_turn: Mutex::new(other_had_a_turn),
        ended,
    });
    world.tasks.spawn(async move {
        while has_begun.recv().await.is_some() {
            turn.send(()).unwrap();
        }
    });
    let builder = world.builder();
    world.run_built_by(builder.recorder(recorder));
    assert_eq!(has_ended.recv().await, Some(true));
    world.end().await;
}
