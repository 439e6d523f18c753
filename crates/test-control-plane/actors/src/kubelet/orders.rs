//! A test's orders to the kubelets.

use std::cmp::Reverse;

use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_server::containers::{KubeletError, PodAddress};
use tokio::sync::oneshot;

use super::Kubelet;
use super::answering::ServedPod;
use super::behaviour::{Crash, PodBehaviour, PodRule, PodRuleId};
use super::container::Container;
use super::ending::Ending;
use super::run::PodRun;
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

impl Kubelet {
    pub(super) fn carry_out(&mut self, order: KubeletOrder, agenda: &mut Agenda) {
        let (pod, order) = match order {
            KubeletOrder::Lose { node } => {
                self.lost.insert(node);
                return;
            }
            KubeletOrder::Heal { node } => {
                if self.lost.remove(&node) {
                    let key = node_key(&node);
                    agenda.now(&key);
                    self.returning.insert(key);
                    self.serve(&node, agenda);
                }
                return;
            }
            KubeletOrder::Running(answer) => {
                // The requester may have given up waiting.
                let _ = answer.send(self.running());
                return;
            }
            KubeletOrder::Find { pod, answer } => {
                // The client may have gone.
                let _ = answer.send(self.find(&pod));
                return;
            }
            KubeletOrder::Log {
                pod,
                container,
                text,
            } => {
                self.log(&pod, &container, &text);
                return;
            }
            KubeletOrder::Refresh => {
                self.ask_again(agenda);
                return;
            }
            KubeletOrder::AddRule { id, rule } => {
                self.rules.insert(Reverse(id), *rule);
                self.ask_again(agenda);
                return;
            }
            KubeletOrder::RemoveRule { id } => {
                self.rules.remove(&Reverse(id));
                self.ask_again(agenda);
                return;
            }
            KubeletOrder::Behave { pod, behaviour } => {
                match behaviour {
                    Some(behaviour) => self.wanted.insert(pod.clone(), *behaviour),
                    None => self.wanted.remove(&pod),
                };
                if let Some(object) = self.client.get(&pod) {
                    self.note(&object, agenda);
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
        let (time, client) = (self.client.server.now_text(), self.client.clone());
        let now = self.now(&time, &client);
        let uid = self.current.get(&pod);
        if let Some(run) = uid.and_then(|uid| self.runs.get_mut(uid)) {
            match order {
                RunOrder::Crash(crash) => run.crash_now(&crash, now),
                RunOrder::Exit(container, nth, code) => run.exit_run(&container, nth, code, now),
                RunOrder::SetReady(ready) => run.set_ready(ready, now),
                RunOrder::End(ending) => run.end_as(ending, now),
            }
            agenda.now(&pod);
        }
    }

    /// Chooses the behaviour of each pod again.
    fn ask_again(&mut self, agenda: &mut Agenda) {
        let pods: Vec<Key> = self.current.keys().cloned().collect();
        for pod in pods {
            if let Some(object) = self.client.get(&pod) {
                self.note(&object, agenda);
            }
        }
    }

    fn log(&self, pod: &Key, container: &str, text: &str) {
        let run = self.current.get(pod).and_then(|uid| self.runs.get(uid));
        let containers = run.into_iter().flat_map(PodRun::all_containers);
        for log in containers
            .filter(|it| it.name == container && it.is_running())
            .filter_map(|it| it.log.as_ref())
        {
            log.append(self.client.server.now(), text);
        }
    }

    fn running(&self) -> Vec<RunningPod> {
        let running = self.runs.values().filter(|run| {
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
}

/// An order for one pod.
enum RunOrder {
    Crash(Crash),
    Exit(String, u32, i32),
    SetReady(bool),
    End(Ending),
}
