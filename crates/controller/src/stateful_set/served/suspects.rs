//! Finds writes of another StatefulSet controller among the changes of a served namespace.
//!
//! The caches hold no `managedFields`. So a change that only a StatefulSet controller makes, and that
//! this one doesn't know as its own, makes the object a suspect, which is read live.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::owner_reference::OwnerReference;
use serde_json::Value;
use statefulset_client::cache::informer::EventHandler;
use statefulset_client::resource::{CONTROLLER_REVISIONS, PODS, Resource, STATEFUL_SETS};
use statefulset_client::rest::RestClient;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{KIND, StatefulSet};
use statefulset_fence::{Trace, is_foreign};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::own_writes::OwnWrites;

/// Time after which the response of an own write has usually arrived. A later one costs a live read;
/// a longer wait would leave this controller time to undo the other's write.
const RESPONSE_USUAL: Duration = Duration::from_millis(100);
/// Maximum number of suspects that wait; while more wait, others are not looked at.
const SUSPECTS_MAX: usize = 256;

/// A changed object that this controller doesn't seem to have written.
struct Suspect {
    resource: Resource,
    key: ObjectKey,
    version: Box<str>,
    trace: Trace,
    seen: Instant,
}

/// The suspects of a namespace.
pub(super) struct Suspects(mpsc::Receiver<Suspect>);

/// Reports suspects, as a handler of the three informers.
#[derive(Clone)]
pub(super) struct SuspectHandler {
    suspects: mpsc::Sender<Suspect>,
    /// Time from which on another controller must not write.
    since: Timestamp,
}

/// Returns the handler, and its suspects.
pub(super) fn suspects(since: Timestamp) -> (SuspectHandler, Suspects) {
    let (sender, receiver) = mpsc::channel(SUSPECTS_MAX);
    let handler = SuspectHandler {
        suspects: sender,
        since,
    };
    (handler, Suspects(receiver))
}

impl Suspects {
    /// Waits for a write of another controller; returns its description.
    pub(super) async fn foreign(&mut self, client: &RestClient, own: &OwnWrites) -> String {
        loop {
            let Some(suspect) = self.0.recv().await else {
                // The informers have ended, and with them the namespace.
                return std::future::pending().await;
            };
            sleep_until(suspect.seen + RESPONSE_USUAL).await;
            if own.made(&suspect.version) {
                continue;
            }
            let Suspect { resource, key, .. } = &suspect;
            let read = client.get(resource, key.namespace(), key.name()).await;
            // A deleted or unreadable object shows nothing.
            let object: Option<Value> = read.ok().and_then(|text| serde_json::from_str(&text).ok());
            if object.is_some_and(|object| is_foreign(&object, suspect.trace)) {
                let what = match suspect.trace {
                    Trace::Owned => "created",
                    Trace::Status(_) => "wrote the status of",
                };
                return format!("the built-in controller {what} {} {key}", resource.kind);
            }
        }
    }
}

impl SuspectHandler {
    fn suspect(&self, resource: Resource, key: ObjectKey, version: &str, trace: Trace) {
        // While the channel is full, there are enough suspects.
        let _ = self.suspects.try_send(Suspect {
            resource,
            key,
            version: version.into(),
            trace,
            seen: Instant::now(),
        });
    }
}

fn is_of_set(controller: Option<&OwnerReference>) -> bool {
    controller.is_some_and(|owner| &*owner.kind == KIND)
}

impl EventHandler<Pod> for SuspectHandler {
    fn on_add(&self, pod: &Arc<Pod>, in_initial_list: bool) {
        if !in_initial_list && is_of_set(pod.controller.as_deref()) {
            self.suspect(PODS, pod.key(), &pod.resource_version, Trace::Owned);
        }
    }

    fn on_update(&self, old: &Arc<Pod>, new: &Arc<Pod>) {
        // A list may show only the pod's successor.
        if old.uid != new.uid {
            self.on_add(new, false);
        }
    }

    fn on_delete(&self, _pod: &Arc<Pod>, _final_state_unknown: bool) {}
}

impl EventHandler<ControllerRevision> for SuspectHandler {
    fn on_add(&self, revision: &Arc<ControllerRevision>, in_initial_list: bool) {
        if !in_initial_list && is_of_set(revision.controller.as_ref()) {
            let version = &revision.resource_version;
            self.suspect(CONTROLLER_REVISIONS, revision.key(), version, Trace::Owned);
        }
    }

    fn on_update(&self, _old: &Arc<ControllerRevision>, _new: &Arc<ControllerRevision>) {}

    fn on_delete(&self, _revision: &Arc<ControllerRevision>, _final_state_unknown: bool) {}
}

impl EventHandler<StatefulSet> for SuspectHandler {
    fn on_add(&self, _set: &Arc<StatefulSet>, _in_initial_list: bool) {}

    fn on_update(&self, old: &Arc<StatefulSet>, new: &Arc<StatefulSet>) {
        if old.status != new.status {
            let version = &new.metadata.resource_version;
            let trace = Trace::Status(self.since);
            self.suspect(STATEFUL_SETS, new.key(), version, trace);
        }
    }

    fn on_delete(&self, _set: &Arc<StatefulSet>, _final_state_unknown: bool) {}
}
