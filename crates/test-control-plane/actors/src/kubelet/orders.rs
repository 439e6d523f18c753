//! A test's orders to the kubelets.

use std::cmp::Reverse;

use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_server::containers::{KubeletError, PodAddress};
use tokio::sync::oneshot;

use super::behaviour::{Crash, PodBehaviour, PodRule, PodRuleId};
use super::container::Container;
use super::ending::end_as;
use super::failing::{crash_now, exit_run};
use super::node_pods::NodePods;
use super::readiness::set_ready;
use super::run::{Ending, PodRun};
use super::served_pod::ServedPod;
use crate::nodes::node_key;
use crate::runner::Agenda;

/// A test's order to the kubelets.
#[derive(Debug)]
pub(crate) enum KubeletOrder {
    /// Overrides the behaviour of the pods with this name; `None` removes the override.
    Behave {
        pod: Key,
        behaviour: Option<Box<PodBehaviour>>,
    },
    /// Evaluates all rules again.
    Refresh,
    /// Adds a rule that takes precedence over the existing ones.
    AddRule { id: PodRuleId, rule: Box<PodRule> },
    /// Removes an added rule.
    RemoveRule { id: PodRuleId },
    /// Crashes a container now.
    Crash { pod: Key, crash: Crash },
    /// Ends a run of a container whose command has ended.
    Exit {
        pod: Key,
        container: String,
        run: u32,
        code: i32,
    },
    /// Marks the running containers ready or unready.
    SetReady { pod: Key, ready: bool },
    /// Ends the pod.
    End { pod: Key, ending: Ending },
    /// Disconnects a node.
    Lose { node: Box<str> },
    /// Reconnects a node.
    Heal { node: Box<str> },
    /// Adds lines to the log of a running container.
    Log {
        pod: Key,
        container: String,
        text: String,
    },
    /// Finds a pod for the API server.
    Find {
        pod: PodAddress,
        answer: oneshot::Sender<Result<ServedPod, KubeletError>>,
    },
    /// Returns the running pods.
    Running(oneshot::Sender<Vec<RunningPod>>),
}

/// A pod with running containers on some node, which may be unknown to the API server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct RunningPod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The node that runs it.
    pub node: String,
}

pub(super) fn carry_out(node_pods: &mut NodePods, order: KubeletOrder, agenda: &mut Agenda) {
    let (pod, order) = match order {
        KubeletOrder::Lose { node } => {
            node_pods.lost.insert(node);
            return;
        }
        KubeletOrder::Heal { node } => {
            if node_pods.lost.remove(&node) {
                let key = node_key(&node);
                agenda.now(&key);
                node_pods.returning.insert(key);
                node_pods.serve(&node, agenda);
            }
            return;
        }
        KubeletOrder::Running(answer) => {
            // The requester may have given up waiting.
            let _ = answer.send(running(node_pods));
            return;
        }
        KubeletOrder::Find { pod, answer } => {
            // The client may have gone.
            let _ = answer.send(node_pods.find(&pod));
            return;
        }
        KubeletOrder::Log {
            pod,
            container,
            text,
        } => {
            log(node_pods, &pod, &container, &text);
            return;
        }
        KubeletOrder::Refresh => {
            ask_again(node_pods, agenda);
            return;
        }
        KubeletOrder::AddRule { id, rule } => {
            node_pods.rules.insert(Reverse(id), *rule);
            ask_again(node_pods, agenda);
            return;
        }
        KubeletOrder::RemoveRule { id } => {
            node_pods.rules.remove(&Reverse(id));
            ask_again(node_pods, agenda);
            return;
        }
        KubeletOrder::Behave { pod, behaviour } => {
            match behaviour {
                Some(behaviour) => node_pods.wanted.insert(pod.clone(), *behaviour),
                None => node_pods.wanted.remove(&pod),
            };
            if let Some(object) = node_pods.client.get(&pod) {
                node_pods.note(&object, agenda);
                agenda.now(&pod);
            }
            return;
        }
        KubeletOrder::Crash { pod, crash } => (pod, RunOrder::Crash(crash)),
        KubeletOrder::Exit {
            pod,
            container,
            run,
            code,
        } => (pod, RunOrder::Exit(container, run, code)),
        KubeletOrder::SetReady { pod, ready } => (pod, RunOrder::SetReady(ready)),
        KubeletOrder::End { pod, ending } => (pod, RunOrder::End(ending)),
    };
    let (time, client) = (node_pods.client.server.now_text(), node_pods.client.clone());
    let now = node_pods.now(&time, &client);
    let uid = node_pods.current.get(&pod);
    if let Some(run) = uid.and_then(|uid| node_pods.runs.get_mut(uid)) {
        match order {
            RunOrder::Crash(crash) => crash_now(run, &crash, now),
            RunOrder::Exit(container, nth, code) => exit_run(run, &container, nth, code, now),
            RunOrder::SetReady(ready) => set_ready(run, ready, now),
            RunOrder::End(ending) => end_as(run, ending, now),
        }
        agenda.now(&pod);
    }
}

/// Chooses the behaviour of each pod again.
fn ask_again(node_pods: &mut NodePods, agenda: &mut Agenda) {
    let pods: Vec<Key> = node_pods.current.keys().cloned().collect();
    for pod in pods {
        if let Some(object) = node_pods.client.get(&pod) {
            node_pods.note(&object, agenda);
        }
    }
}

fn log(node_pods: &NodePods, pod: &Key, container: &str, text: &str) {
    let run = node_pods
        .current
        .get(pod)
        .and_then(|uid| node_pods.runs.get(uid));
    let containers = run.into_iter().flat_map(PodRun::all_containers);
    for log in containers
        .filter(|it| it.name == container && it.is_running())
        .filter_map(|it| it.log.as_ref())
    {
        log.append(node_pods.client.server.now(), text);
    }
}

fn running(node_pods: &NodePods) -> Vec<RunningPod> {
    let running = node_pods.runs.values().filter(|run| {
        let mut containers = run.containers.iter();
        containers.any(Container::is_running)
    });
    let mut pods: Vec<RunningPod> = running
        .map(|run| RunningPod {
            namespace: run.key.namespace.to_string(),
            name: run.key.name.to_string(),
            uid: run.uid.to_string(),
            node: run.node.to_string(),
        })
        .collect();
    pods.sort();
    pods
}

/// An order for one pod.
enum RunOrder {
    Crash(Crash),
    Exit(String, u32, i32),
    SetReady(bool),
    End(Ending),
}
