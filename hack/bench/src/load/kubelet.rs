//! The driver's kubelet: it makes every pod ready at once, and ends every deleted one.

use std::collections::HashSet;
use std::future::ready;
use std::sync::Arc;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::disturbance::is_disturbed;
use super::reactions::Reactions;
use super::requests::Own;

/// Number of requests at a time.
const IN_FLIGHT: usize = 32;

/// A task that serves the pods of a namespace until dropped.
pub(crate) struct Kubelet {
    /// Number of pods that exist.
    pub(crate) live: watch::Receiver<usize>,
    _tasks: JoinSet<()>,
}

impl Kubelet {
    /// Begins to serve the pods.
    pub(crate) fn start(pods: Api<Pod>, own: Arc<Own>, reactions: Arc<Reactions>) -> Self {
        let (sender, live) = watch::channel(0);
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(pods, own, reactions, sender));
        Self {
            live,
            _tasks: tasks,
        }
    }
}

async fn serve(
    pods: Api<Pod>,
    own: Arc<Own>,
    reactions: Arc<Reactions>,
    live: watch::Sender<usize>,
) {
    let mut names = HashSet::new();
    let seen = Arc::clone(&reactions);
    let events = watcher(pods.clone(), watcher::Config::default()).default_backoff();
    let actions = events.filter_map(move |event| {
        // The watcher begins again after an error.
        let action = event
            .ok()
            .and_then(|event| observe(event, &mut names, &seen));
        live.send_replace(names.len());
        ready(action)
    });
    actions
        .for_each_concurrent(IN_FLIGHT, |action| act(&pods, &own, &reactions, action))
        .await;
}

/// A request for a pod.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    Start { name: String },
    End { name: String, uid: String },
}

/// Notes the pods that exist, and returns the event's action.
fn observe(
    event: Event<Pod>,
    names: &mut HashSet<String>,
    reactions: &Reactions,
) -> Option<Action> {
    let pod = match event {
        Event::Apply(pod) | Event::InitApply(pod) => pod,
        Event::Delete(pod) => {
            names.remove(&pod.name_any());
            return None;
        }
        Event::Init => {
            names.clear();
            return None;
        }
        Event::InitDone => return None,
    };
    let name = pod.name_any();
    if is_disturbed(&name) {
        return None;
    }
    if names.insert(name.clone()) {
        reactions.created(&name);
    }
    if pod.metadata.deletion_timestamp.is_some() {
        let uid = pod.uid().unwrap_or_default();
        return Some(Action::End { name, uid });
    }
    (!is_ready(&pod)).then_some(Action::Start { name })
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    let is_true =
        |condition: &PodCondition| condition.type_ == "Ready" && condition.status == "True";
    conditions.is_some_and(|conditions| conditions.iter().any(is_true))
}

/// Sends the request. A failed one concerns a pod that has changed since, so that another event
/// follows.
async fn act(pods: &Api<Pod>, own: &Own, reactions: &Reactions, action: Action) {
    match action {
        Action::Start { name } => {
            own.add("patch pods/status");
            let patch = Patch::Strategic(started());
            let started = pods
                .patch_status(&name, &PatchParams::default(), &patch)
                .await;
            if started.is_ok() {
                reactions.ready(&name);
            }
        }
        Action::End { name, uid } => {
            own.add("delete pods");
            let params = DeleteParams::default()
                .grace_period(0)
                .preconditions(Preconditions {
                    uid: Some(uid),
                    resource_version: None,
                });
            if pods.delete(&name, &params).await.is_ok() {
                reactions.gone(&name);
            }
        }
    }
}

/// The status of a pod whose only container runs.
fn started() -> serde_json::Value {
    let at = "2026-01-01T00:00:00Z";
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": at});
    let kinds = ["PodScheduled", "Initialized", "ContainersReady", "Ready"];
    json!({"status": {
        "phase": "Running",
        "startTime": at,
        "hostIP": "192.0.2.1",
        "podIP": "192.0.2.2",
        "podIPs": [{"ip": "192.0.2.2"}],
        "conditions": kinds.map(condition),
        "containerStatuses": [{
            "name": "app",
            "image": "registry.example/app",
            "imageID": "registry.example/app@sha256:0",
            "ready": true,
            "started": true,
            "restartCount": 0,
            "state": {"running": {"startedAt": at}},
        }],
    }})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(value: serde_json::Value) -> Event<Pod> {
        Event::Apply(serde_json::from_value(value).unwrap())
    }

    #[test]
    fn unready_pods_start_and_terminating_pods_end() {
        let (mut names, reactions) = (HashSet::new(), Reactions::default());
        let event = pod(json!({"metadata": {"name": "a"}}));
        let start = Action::Start {
            name: "a".to_owned(),
        };
        assert_eq!(observe(event, &mut names, &reactions), Some(start));
        let mut running = started();
        running["metadata"] = json!({"name": "a", "uid": "u"});
        assert_eq!(observe(pod(running.clone()), &mut names, &reactions), None);
        running["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let end = Action::End {
            name: "a".to_owned(),
            uid: "u".to_owned(),
        };
        assert_eq!(
            observe(pod(running.clone()), &mut names, &reactions),
            Some(end)
        );
        assert_eq!(names.len(), 1);
        let gone = serde_json::from_value(running).unwrap();
        assert_eq!(observe(Event::Delete(gone), &mut names, &reactions), None);
        assert!(names.is_empty());
    }
}
