//! The sets under load.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures::stream::{BoxStream, StreamExt as _};
use futures::{TryStreamExt as _, stream};
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::args::Args;
use super::progress::progress;
use super::requests::Own;

/// Number of requests at a time.
const IN_FLIGHT: usize = 16;
/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(5);

/// The sets of a round, and a watch of them.
pub(crate) struct Workload {
    sets: Api<StatefulSet>,
    names: Vec<String>,
    policy: &'static str,
    replicas: u32,
    own: Arc<Own>,
    events: BoxStream<'static, Result<Event<StatefulSet>, watcher::Error>>,
    states: HashMap<String, State>,
    patience: Duration,
    title: String,
}

/// The last seen state of a set.
struct State {
    generation: i64,
    is_complete: bool,
}

/// The generation that each set has after a change, by name.
type Wanted = HashMap<String, i64>;

impl Workload {
    /// Describes the sets; none is created yet.
    pub(crate) fn new(args: &Args, sets: Api<StatefulSet>, own: Arc<Own>, title: String) -> Self {
        let events = watcher(sets.clone(), watcher::Config::default()).default_backoff();
        Self {
            sets,
            names: (0..args.sets)
                .map(|number| format!("web-{number:05}"))
                .collect(),
            policy: args.policy.name(),
            replicas: args.replicas,
            own,
            events: events.boxed(),
            states: HashMap::new(),
            patience: args.patience(),
            title,
        }
    }

    /// Creates the sets, and waits until they are complete.
    pub(crate) async fn create(&mut self) -> anyhow::Result<()> {
        let (sets, own) = (&self.sets, &self.own);
        let (policy, replicas) = (self.policy, self.replicas);
        let create = |name: &String| {
            let manifest = serde_json::from_value(manifest(name, policy, replicas));
            async move {
                own.add("create statefulsets");
                let created = sets.create(&PostParams::default(), &manifest?).await?;
                anyhow::Ok((created.name_any(), generation(&created)))
            }
        };
        let wanted = stream::iter(self.names.iter().map(create))
            .buffer_unordered(IN_FLIGHT)
            .try_collect()
            .await
            .context("create a set")?;
        self.complete(wanted).await
    }

    /// Changes the image of every set, and waits until they are complete.
    pub(crate) async fn roll(&mut self) -> anyhow::Result<()> {
        let container = json!({"name": "app", "image": "registry.example/app:v2"});
        let template = json!({"spec": {"containers": [container]}});
        self.patch(&json!({"spec": {"template": template}})).await
    }

    /// Scales every set to no replicas, and waits until they are complete.
    pub(crate) async fn scale(&mut self) -> anyhow::Result<()> {
        self.patch(&json!({"spec": {"replicas": 0}})).await
    }

    async fn patch(&mut self, patch: &Value) -> anyhow::Result<()> {
        let (sets, own) = (&self.sets, &self.own);
        let send = |name: &String| {
            let name = name.clone();
            async move {
                own.add("patch statefulsets");
                let (params, patch) = (PatchParams::default(), Patch::Strategic(patch));
                let patched = sets.patch(&name, &params, &patch).await?;
                anyhow::Ok((name, generation(&patched)))
            }
        };
        let wanted = stream::iter(self.names.iter().map(send))
            .buffer_unordered(IN_FLIGHT)
            .try_collect()
            .await
            .context("patch a set")?;
        self.complete(wanted).await
    }

    /// Deletes every set; the pods stay.
    pub(crate) async fn delete(&mut self) -> anyhow::Result<()> {
        let (sets, own) = (&self.sets, &self.own);
        let send = |name: &String| {
            let name = name.clone();
            async move {
                own.add("delete statefulsets");
                sets.delete(&name, &DeleteParams::background()).await
            }
        };
        stream::iter(self.names.iter().map(send))
            .buffer_unordered(IN_FLIGHT)
            .try_for_each(async |_| Ok(()))
            .await
            .context("delete a set")
    }

    /// Reads events until every set has the generation and is complete.
    async fn complete(&mut self, wanted: Wanted) -> anyhow::Result<()> {
        let deadline = Instant::now() + self.patience;
        let mut open: HashSet<String> = wanted.keys().cloned().collect();
        let (all, mut next_line) = (open.len(), Instant::now() + PROGRESS);
        open.retain(|name| !self.is_complete(name, &wanted));
        while !open.is_empty() {
            let event = timeout_at(deadline, self.events.next()).await;
            let Ok(event) = event else {
                let name = open.iter().min().map(String::as_str).unwrap_or_default();
                let (open, patience) = (open.len(), self.patience);
                bail!("{open} of {all} sets, {name} among them, not complete after {patience:?}");
            };
            // The watcher begins again after an error.
            let Some(Ok(Event::Apply(set) | Event::InitApply(set))) = event else {
                continue;
            };
            let name = set.name_any();
            self.states.insert(name.clone(), state(&set));
            if self.is_complete(&name, &wanted) {
                open.remove(&name);
            }
            if Instant::now() >= next_line {
                next_line += PROGRESS;
                let text = format!("{} of {all} sets are complete", all - open.len());
                progress(&self.title, &text);
            }
        }
        Ok(())
    }

    fn is_complete(&self, name: &str, wanted: &Wanted) -> bool {
        let (state, wanted) = (self.states.get(name), wanted.get(name));
        state
            .zip(wanted)
            .is_some_and(|(state, wanted)| state.is_complete && state.generation >= *wanted)
    }
}

fn generation(set: &StatefulSet) -> i64 {
    set.metadata.generation.unwrap_or_default()
}

fn state(set: &StatefulSet) -> State {
    let generation = generation(set);
    let replicas = set.spec.as_ref().and_then(|spec| spec.replicas);
    let is_complete = set.status.as_ref().is_some_and(|status| {
        let counts = [
            Some(status.replicas),
            status.ready_replicas,
            status.updated_replicas,
        ];
        status.observed_generation == Some(generation)
            && status.current_revision == status.update_revision
            && counts
                .iter()
                .all(|count| count.unwrap_or_default() == replicas.unwrap_or(1))
    });
    State {
        generation,
        is_complete,
    }
}

/// A set with one container of usual size. The pods name a node, so that their deletion waits for
/// the kubelet.
pub(crate) fn manifest(name: &str, policy: &str, replicas: u32) -> Value {
    let labels = json!({"app": name});
    let variable =
        |number: u32| json!({"name": format!("SETTING_{number}"), "value": "some-value"});
    let probe = json!({"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 5});
    json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "podManagementPolicy": policy,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeName": "bench",
                    "automountServiceAccountToken": false,
                    "containers": [{
                        "name": "app",
                        "image": "registry.example/app:v1",
                        "ports": [{"name": "http", "containerPort": 8080}],
                        "env": (0..8).map(variable).collect::<Vec<_>>(),
                        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
                        "readinessProbe": probe,
                        "livenessProbe": probe,
                    }],
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completes(status: &Value) -> bool {
        let mut set = manifest("web", "Parallel", 2);
        set["metadata"]["generation"] = json!(3);
        set["status"] = status.clone();
        state(&serde_json::from_value(set).unwrap()).is_complete
    }

    #[test]
    fn complete_sets_have_ready_pods_of_one_revision() {
        let complete = json!({
            "observedGeneration": 3, "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2,
            "currentRevision": "a", "updateRevision": "a",
        });
        assert!(completes(&complete));
        let changes = [
            ("observedGeneration", json!(2)),
            ("replicas", json!(3)),
            ("readyReplicas", json!(1)),
            ("updatedReplicas", json!(1)),
            ("updateRevision", json!("b")),
        ];
        for (member, value) in changes {
            let mut status = complete.clone();
            status[member] = value;
            assert!(!completes(&status), "{member}");
        }
    }
}
