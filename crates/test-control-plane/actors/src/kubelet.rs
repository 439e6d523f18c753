//! The kubelets of all nodes: they start pods, make them ready, and restart and stop their
//! containers.
//!
//! A [`PodRun`](run::PodRun) is a pod on its node: its containers, and timers for its next steps. A
//! status is written only for a change in the simulation, so that a test may set conditions itself.

mod adopting;
mod annotations;
mod answering;
mod behaviour;
mod changing;
mod config;
mod container;
mod ending;
mod failing;
mod invariants;
mod log;
mod lost_node_pods;
mod node_pods;
mod orders;
mod own_command;
mod readiness;
mod references;
mod run;
mod script;
mod served_pod;
mod shell;
mod starting;
mod status;
mod steps;
mod updating;

use futures::FutureExt;
use serde_json::{Value, json};

pub(super) use answering::NodeKubelets;
pub use behaviour::{
    BackOff, Cause, Crash, Flap, ImagePullFailure, Outcome, ParsePodRulesError, PodBehaviour,
    PodRule, PodRuleId, ReadinessStep, Resize, Stop,
};
pub use config::{BehaviourRule, KubeletConfig};
pub use invariants::{Invariants, Violation};
use node_pods::NodePods;
pub(super) use orders::KubeletOrder;
pub use orders::RunningPod;
pub use script::{
    CommandHandler, ContainerName, Handlers, LogLine, PortHandler, PortServer, Program,
    ScriptedCommand, ScriptedPort, port_server, program,
};

use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_store::store::{Change, LogEntry};

use super::client::ActorClient;
use super::events::{Recorder, pod_reference};
use super::nodes;
use super::pods::unbound_claim;
use super::runner::{Actor, Agenda, Work};
pub(super) use run::Ending;
use run::Stage;

/// Completed work for a pod or a node.
#[derive(Debug)]
pub(super) enum Done {
    /// The status of the pod with this uid was written.
    Written(Box<str>),
    /// The pod's deletion is complete, or there were only events to write.
    Ended,
    /// The node reported as healthy again.
    Returned,
}

/// Completes the deletion of a stopped pod.
async fn remove(client: &ActorClient, key: &Key, uid: &str) -> bool {
    let options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": uid},
    });
    client.delete((key, uid), &options).await
}

/// The kubelets of all nodes.
#[derive(Debug)]
pub(super) struct Kubelet {
    pods: NodePods,
}

impl Kubelet {
    pub(super) fn new(
        client: ActorClient,
        config: KubeletConfig,
        waits_for_claims: bool,
        invariants: Invariants,
        events: Option<Recorder>,
        seed: u64,
    ) -> Self {
        Self {
            pods: NodePods::new(client, config, waits_for_claims, invariants, events, seed),
        }
    }
}

impl Actor for Kubelet {
    type Order = KubeletOrder;
    type Done = Done;

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let object = &entry.object;
        match &*object.key.storage {
            "pods" if entry.change == Change::Deleted => self.pods.forget(&object.key, &object.uid),
            "pods" => self.pods.note(object, agenda),
            "nodes" => self.pods.note_node(entry, agenda),
            "configmaps" | "persistentvolumeclaims" | "secrets" | "serviceaccounts" => {
                for pod in self.pods.waiting.take(&object.key) {
                    agenda.now(&pod);
                }
            }
            _ => {}
        }
    }

    fn act(&mut self, key: &Key, agenda: &mut Agenda) -> Option<Work<Done>> {
        let object = self.pods.client.get(key)?;
        if &*key.storage == "nodes" {
            return report_node(&self.pods, &object);
        }
        let (time, client) = (self.pods.client.server.now_text(), self.pods.client.clone());
        let now = self.pods.now(&time, &client);
        let served = self.pods.is_served(self.pods.fields.node(&object));
        let port_is_taken = run::lacks_port(&self.pods.runs, &object.uid);
        let run = self.pods.runs.get(&object.uid).filter(|_| served)?;
        let pod = object.value();
        let starts = run.is_starting(now.at);
        let claim = (starts && self.pods.waits_for_claims)
            .then(|| unbound_claim(&client, &pod, &key.namespace));
        if let Some(claim) = claim.flatten() {
            self.pods.waiting.wait(claim, key);
            return write(&mut self.pods, &object, pod);
        }
        let missing = now
            .references
            .filter(|_| starts)
            .map(|client| references::missing_volumes(client, &pod, &key.namespace));
        let missing = missing.unwrap_or_default();
        let starts = starts && missing.is_empty();
        let host = run.host_ip.clone();
        let address = starts.then(|| self.pods.new_address(&pod, &host));
        let run = self.pods.runs.get_mut(&object.uid)?;
        if starts && port_is_taken {
            ending::end_as(run, Ending::port_conflict(), now);
        }
        starting::retry_config(run, now);
        if missing.is_empty() {
            steps::run_due(run, address, now);
        } else {
            references::wait_for_volumes(run, missing);
            steps::run_due_but_start(run, now);
        }
        updating::attach(run, &pod, now);
        if let Some(due) = run.next_due_after(now.at) {
            agenda.at(key, due);
        }
        for missing in std::mem::take(&mut run.awaited) {
            self.pods.waiting.wait(missing, key);
        }
        self.pods.check_duplicate_runs(&object.uid);
        write(&mut self.pods, &object, pod)
    }

    fn done(&mut self, key: &Key, done: Done, agenda: &mut Agenda) {
        match done {
            Done::Written(uid) => {
                let Some(run) = self.pods.runs.get_mut(&uid) else {
                    return;
                };
                if let Some(sent) = run.sent.take() {
                    run.reported = Some(sent);
                }
                if run.stage == Stage::Stopped {
                    agenda.now(key);
                }
            }
            Done::Ended => {}
            Done::Returned => {
                self.pods.returning.remove(key);
            }
        }
    }

    fn obey(&mut self, order: KubeletOrder, agenda: &mut Agenda) {
        orders::carry_out(&mut self.pods, order, agenda);
    }

    fn reset(&mut self) {}

    fn replayed(&mut self, _: &mut Agenda) {
        let gone: Vec<(Key, Box<str>)> = self
            .pods
            .current
            .iter()
            .filter(|(key, uid)| self.pods.client.get(key).is_none_or(|o| o.uid != **uid))
            .map(|(key, uid)| (key.clone(), uid.clone()))
            .collect();
        for (key, uid) in gone {
            self.pods.forget(&key, &uid);
        }
    }
}

/// Reports whether a pod was already stopped and only finalizers hold it.
fn is_held(pod: &Value) -> bool {
    let grace = pod.pointer("/metadata/deletionGracePeriodSeconds");
    let finalizers = pod
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array);
    grace == Some(&json!(0)) && finalizers.is_some_and(|list| !list.is_empty())
}

/// Writes a pod's status, or completes its deletion after its final status is written.
fn write(pods: &mut NodePods, object: &Object, pod: Value) -> Option<Work<Done>> {
    let time = pods.client.server.now_text();
    let run = pods.runs.get_mut(&object.uid)?;
    let pending = std::mem::take(&mut run.pending_events);
    let events = pods.events.clone().filter(|_| !pending.is_empty());
    let stopped = run.stage == Stage::Stopped;
    let status = status::report(run, &pod, &time);
    let stays = !stopped || is_held(&pod);
    if status.is_none() && stays && events.is_none() {
        return None;
    }
    run.sent.clone_from(&status);
    let client = pods.client.clone();
    let (key, uid, node) = (object.key.clone(), object.uid.clone(), run.node.clone());
    let about = pod_reference(object);
    Some(
        async move {
            if let Some(events) = events {
                for event in &pending {
                    let source = ("kubelet", &*node);
                    events.record(source, &about, event.as_event()).await;
                }
            }
            let Some(status) = status else {
                let done = stays || remove(&client, &key, &uid).await;
                return done.then_some(Done::Ended);
            };
            let patch = status::patch(&status, &pod);
            let written = client.patch_status(&key, &uid, &patch).await;
            written.then_some(Done::Written(uid))
        }
        .boxed(),
    )
}

/// Reports a node as healthy, if it has just reconnected.
fn report_node(pods: &NodePods, object: &Object) -> Option<Work<Done>> {
    let conditions = pods.returning.contains(&object.key);
    let conditions = conditions.then(|| nodes::conditions(&pods.client.server.now_text()))?;
    let client = pods.client.clone();
    let (key, uid) = (object.key.clone(), object.uid.clone());
    Some(
        async move {
            let status = json!({"conditions": conditions});
            let written = client.patch_status(&key, &uid, &status).await;
            written.then_some(Done::Returned)
        }
        .boxed(),
    )
}
