//! Events in the format of the components that the actors simulate.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Method;
use kube_apimachinery::time;
use kube_test_control_plane_api::object::{MetadataRef, Object};
use serde_json::{Value, json};

use super::client::ActorClient;

/// Limit of remembered events, whose repetitions increase a count.
const KNOWN_MAX: usize = 4096;

/// Limit of names tried for one event.
const NAMES_MAX: usize = 20;

/// An occurrence to report for an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventRef<'a> {
    pub(super) warning: bool,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
    /// The affected part of the object.
    pub(super) field_path: Option<&'a str>,
}

impl EventRef<'_> {
    fn event_type(&self) -> &'static str {
        if self.warning { "Warning" } else { "Normal" }
    }
}

/// Writes the events of one actor. An event is lost if its write fails, as with client-go's
/// recorders. Clones share their state.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    client: ActorClient,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of events written; separates events of the same instant.
    written: i128,
    /// Path and count of each written event, by its identity.
    known: BTreeMap<String, (String, u32)>,
}

impl Recorder {
    pub(super) fn new(client: ActorClient) -> Self {
        Self {
            client,
            state: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an event through the core group, as kubelets do. A repetition increases the count.
    ///
    /// Upstream: `EventRecorder` of `k8s.io/client-go/tools/record`.
    pub(super) async fn record(
        &self,
        (component, host): (&str, &str),
        about: &Value,
        event: EventRef<'_>,
    ) {
        let now = self.client.server.now_text();
        let about = referred(about, event);
        let same = format!(
            "{component} {host} {}{} {} {}",
            about["uid"], about["fieldPath"], event.reason, event.message
        );
        let known = self.lock().known.get_mut(&same).map(|(path, count)| {
            *count += 1;
            (path.clone(), *count)
        });
        if let Some((path, count)) = known {
            let patch = json!({"count": count, "lastTimestamp": now});
            let (code, _) = self.client.ask(Method::PATCH, &path, &patch).await;
            if code != 404 {
                return;
            }
        }
        let body = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "involvedObject": about,
            "type": event.event_type(),
            "reason": event.reason,
            "message": event.message,
            "source": {"component": component, "host": host},
            "reportingComponent": component,
            "reportingInstance": host,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        });
        if let Some(path) = self.create("/api/v1", &about, body).await {
            let mut state = self.lock();
            if state.known.len() >= KNOWN_MAX {
                state.known.clear();
            }
            state.known.insert(same, (path, 1));
        }
    }

    /// Records an event through `events.k8s.io`, as the scheduler does.
    ///
    /// Upstream: `EventRecorder` of `k8s.io/client-go/tools/events`.
    pub(super) async fn report(
        &self,
        controller: &str,
        action: &str,
        about: &Value,
        event: EventRef<'_>,
    ) {
        let body = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "regarding": referred(about, event),
            "type": event.event_type(),
            "reason": event.reason,
            "note": event.message,
            "action": action,
            "eventTime": time::format_micros(self.client.server.now()),
            "reportingController": controller,
            "reportingInstance": format!("{controller}-test-control-plane"),
        });
        self.create("/apis/events.k8s.io/v1", about, body).await;
    }

    /// Creates an event named after its object and the time, and returns its path.
    async fn create(&self, version: &str, about: &Value, mut event: Value) -> Option<String> {
        let object = MetadataRef(Some(about));
        let (name, namespace) = (object.name(), object.namespace());
        let path = format!("{version}/namespaces/{namespace}/events");
        // With a frozen clock, another recorder may have used this name.
        for _ in 0..NAMES_MAX {
            let moment = self.moment();
            let name = format!("{name}.{moment:x}");
            event["metadata"] = json!({"name": name, "namespace": namespace});
            match self.client.ask(Method::POST, &path, &event).await.0 {
                201 => return Some(format!("{path}/{name}")),
                409 => {}
                _ => return None,
            }
        }
        None
    }

    /// Returns a unique nanosecond for a new event.
    fn moment(&self) -> i128 {
        let now = self.client.server.now().as_nanosecond();
        let mut state = self.lock();
        state.written += 1;
        now + state.written
    }
}

/// Returns the reference to a pod in events.
pub(super) fn pod_reference(object: &Object) -> Value {
    json!({
        "kind": "Pod",
        "apiVersion": "v1",
        "namespace": *object.key.namespace,
        "name": *object.key.name,
        "uid": *object.uid,
        "resourceVersion": object.resource_version.to_string(),
    })
}

fn referred(about: &Value, event: EventRef<'_>) -> Value {
    let mut about = about.clone();
    if let Some(path) = event.field_path {
        about["fieldPath"] = json!(path);
    }
    about
}
