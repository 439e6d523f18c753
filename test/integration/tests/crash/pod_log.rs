//! Log of all pod states, recorded by a watch.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use integration::NodeCluster;
use integration::space::Space;
use integration::stateful_sets::{name, uid};
use kube::core::WatchEvent;
use serde_json::Value;
use statefulset_client::resource::PODS;
use tokio::task::JoinSet;

/// Pod states, in order.
pub(crate) struct PodLog {
    /// Pods at the start.
    before: BTreeMap<String, Value>,
    events: Arc<Mutex<Vec<Event>>>,
    _watch: JoinSet<()>,
}

enum Event {
    Is(Value),
    Gone(Value),
}

impl PodLog {
    /// Starts watching.
    pub(crate) async fn begin(cluster: &NodeCluster) -> Self {
        let space = Space::new(cluster.plane().client(), "default");
        let list = space.list_object(&PODS, "").await;
        let version = list["metadata"]["resourceVersion"].as_str().unwrap();
        let version = version.to_owned();
        let pods = list["items"].as_array().cloned().unwrap_or_default();
        let before = pods.into_iter().map(|pod| (name(&pod).to_owned(), pod));
        let before = before.collect();
        let events = Arc::new(Mutex::new(Vec::new()));
        let mut watch = JoinSet::new();
        let log = Arc::clone(&events);
        watch.spawn(async move {
            let mut stream = pin!(space.watch(&PODS, "", &version).await);
            while let Some(event) = stream.next().await {
                let event = match event {
                    WatchEvent::Added(pod) | WatchEvent::Modified(pod) => Event::Is(pod),
                    WatchEvent::Deleted(pod) => Event::Gone(pod),
                    WatchEvent::Bookmark(_) => continue,
                    WatchEvent::Error(status) => panic!("{status:?}"),
                };
                log.lock().unwrap().push(event);
            }
        });
        Self {
            before,
            events,
            _watch: watch,
        }
    }

    /// Number of pods that each name has had, and how many of them were deleted on request.
    pub(crate) fn lives(&self) -> BTreeMap<String, (usize, usize)> {
        let mut lives: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        self.for_each_change(|change, pod, _| {
            let (born, deleted) = lives.entry(name(pod).to_owned()).or_default();
            match change {
                Change::Created => *born += 1,
                Change::Deleted => *deleted += 1,
            }
        });
        lives
    }

    /// Checks that a pod is created only after all lower ones are ready, and that none is deleted
    /// while another is unready.
    ///
    /// Invariants O-1, O-4 and B-1 of ordered sets whose pods don't fail on their own.
    pub(crate) fn assert_in_order(&self, what: &str) {
        self.for_each_change(|change, pod, others| {
            let mut unready = others.values().filter(|other| !is_ready(other));
            match change {
                Change::Created => {
                    for below in 0..ordinal(pod) {
                        let below = others.get(&format!("web-{below}"));
                        let is_ready = below.is_some_and(is_ready);
                        assert!(is_ready, "{what}: {} is created too early", name(pod));
                    }
                }
                Change::Deleted => {
                    let unready = unready.next().map(name);
                    assert_eq!(unready, None, "{what}: {} is deleted too early", name(pod));
                }
            }
        });
    }

    /// Calls `call` for each creation and each deletion request, with the other pods at that time.
    fn for_each_change(&self, mut call: impl FnMut(Change, &Value, &BTreeMap<String, Value>)) {
        let mut pods = self.before.clone();
        for event in &*self.events.lock().unwrap() {
            let (Event::Is(pod) | Event::Gone(pod)) = event;
            let known = pods.remove(name(pod));
            let known = known.filter(|known| uid(known) == uid(pod));
            if known.is_none() {
                call(Change::Created, pod, &pods);
            }
            let was_deleted = known.as_ref().is_some_and(is_deleted);
            let is_deleted = is_deleted(pod) || matches!(event, Event::Gone(_));
            if is_deleted && !was_deleted {
                call(Change::Deleted, pod, &pods);
            }
            if let Event::Is(pod) = event {
                pods.insert(name(pod).to_owned(), pod.clone());
            }
        }
    }
}

enum Change {
    Created,
    Deleted,
}

fn ordinal(pod: &Value) -> u32 {
    let ordinal = name(pod).rsplit_once('-').map(|(_, ordinal)| ordinal);
    ordinal.unwrap().parse().unwrap()
}

fn is_deleted(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let ready = conditions.any(|it| it["type"] == "Ready" && it["status"] == "True");
    ready && !is_deleted(pod)
}
