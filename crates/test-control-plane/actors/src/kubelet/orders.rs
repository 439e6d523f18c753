//! A test's orders to the kubelets.

use std::cmp::Reverse;

use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_server::containers::{KubeletError, PodAddress};
use tokio::sync::oneshot;

use super::behaviour::{Crash, PodBehaviour, PodRule, PodRuleId};
use super::container::Container;
use super::ending::end_as;
use super::failing::{crash_now, exit_run};
use super::node_pods::Kubelet;
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

pub(super) fn carry_out(kubelet: &mut Kubelet, order: KubeletOrder, agenda: &mut Agenda) {
    let (pod, order) = match order {
        KubeletOrder::Lose { node } => {
            kubelet.lost.insert(node);
            return;
        }
        KubeletOrder::Heal { node } => {
            if kubelet.lost.remove(&node) {
                let key = node_key(&node);
                agenda.now(&key);
                kubelet.returning.insert(key);
                kubelet.serve(&node, agenda);
            }
            return;
        }
        KubeletOrder::Running(answer) => {
            // The requester may have given up waiting.
            let _ = answer.send(running(kubelet));
            return;
        }
        KubeletOrder::Find { pod, answer } => {
            // The client may have gone.
            let _ = answer.send(kubelet.find(&pod));
            return;
        }
        KubeletOrder::Log {
            pod,
            container,
            text,
        } => {
            log(kubelet, &pod, &container, &text);
            return;
        }
        KubeletOrder::Refresh => {
            ask_again(kubelet, agenda);
            return;
        }
        KubeletOrder::AddRule { id, rule } => {
            kubelet.rules.insert(Reverse(id), *rule);
            ask_again(kubelet, agenda);
            return;
        }
        KubeletOrder::RemoveRule { id } => {
            kubelet.rules.remove(&Reverse(id));
            ask_again(kubelet, agenda);
            return;
        }
        KubeletOrder::Behave { pod, behaviour } => {
            match behaviour {
                Some(behaviour) => kubelet.wanted.insert(pod.clone(), *behaviour),
                None => kubelet.wanted.remove(&pod),
            };
            if let Some(object) = kubelet.client.get(&pod) {
                kubelet.note(&object, agenda);
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
    let (time, client) = (kubelet.client.server.now_text(), kubelet.client.clone());
    let now = kubelet.now(&time, &client);
    let uid = kubelet.current.get(&pod);
    if let Some(run) = uid.and_then(|uid| kubelet.runs.get_mut(uid)) {
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
fn ask_again(kubelet: &mut Kubelet, agenda: &mut Agenda) {
    let pods: Vec<Key> = kubelet.current.keys().cloned().collect();
    for pod in pods {
        if let Some(object) = kubelet.client.get(&pod) {
            kubelet.note(&object, agenda);
        }
    }
}

fn log(kubelet: &Kubelet, pod: &Key, container: &str, text: &str) {
    let run = kubelet
        .current
        .get(pod)
        .and_then(|uid| kubelet.runs.get(uid));
    let containers = run.into_iter().flat_map(PodRun::all_containers);
    for log in containers
        .filter(|it| it.name == container && it.is_running())
        .filter_map(|it| it.log.as_ref())
    {
        log.append(kubelet.client.server.now(), text);
    }
}

fn running(kubelet: &Kubelet) -> Vec<RunningPod> {
    let running = kubelet.runs.values().filter(|run| {
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
