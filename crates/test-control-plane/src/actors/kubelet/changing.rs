//! What a change of a pod, or of how it is to behave, does to its containers.

use std::time::Duration;

use serde_json::Value;

use super::behaviour::{Outcome, PodBehaviour};
use super::container::{Container, Role, State};
use super::ending::Ending;
use super::run::{Now, PodRun, Stage, Timer};

impl PodRun {
    /// Takes over what somebody else has said in the status of a pod that is new here.
    pub(super) fn adopt(&mut self, pod: &Value, now: Now<'_>) {
        let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str);
        let phase = text("/status/phase").unwrap_or_default();
        if matches!(phase, "Failed" | "Succeeded") {
            self.timers.clear();
            self.stage = Stage::Ended;
            let failed = phase == "Failed";
            let cause = self.behaviour.cause;
            self.ending = Some(Ending { failed, cause });
        } else if phase == "Running" {
            self.timers.clear();
            self.stage = Stage::Running;
            self.pod_ip = text("/status/podIP").map(str::to_owned);
            let is_ready = is_ready(pod);
            for i in 0..self.containers.len() {
                let container = &mut self.containers[i];
                container.runs = 1;
                container.ready = is_ready;
                container.state = State::Running {
                    since: now.time.to_owned(),
                };
                if container.role == Role::Init {
                    self.terminate(i, 0, None, "Completed", now);
                } else if container.role == Role::Main {
                    if is_ready {
                        self.plan_flap(now);
                    } else {
                        self.plan_readiness(i, now);
                    }
                    self.plan_crash(i, now);
                }
            }
        } else {
            return;
        }
        self.reported = self.report(pod, now.time);
    }

    /// Takes a change of the pod into account; whether that changed anything here.
    pub(super) fn change(&mut self, pod: &Value, behaviour: PodBehaviour, now: Now<'_>) -> bool {
        let phase = pod.pointer("/status/phase").and_then(Value::as_str);
        if let Some(phase @ ("Failed" | "Succeeded")) = phase
            && matches!(self.stage, Stage::Creating | Stage::Running)
        {
            // Somebody else has ended it.
            let (failed, cause) = (phase == "Failed", self.behaviour.cause);
            self.end_as(Ending { failed, cause }, now);
            self.happened.clear();
            self.reported = self.report(pod, now.time);
            return false;
        }
        let changed = self.change_images(pod, now);
        if self.behaviour == behaviour {
            return changed;
        }
        self.behave(behaviour, now);
        true
    }

    /// Starts containers again that have another image now; whether there are any.
    fn change_images(&mut self, pod: &Value, now: Now<'_>) -> bool {
        let mut changed = false;
        for i in 0..self.containers.len() {
            let container = &self.containers[i];
            let Some(image) = image_of(pod, container).filter(|image| *image != container.image)
            else {
                continue;
            };
            changed = true;
            let image = image.to_owned();
            let message = format!(
                "Container {} definition changed, will be restarted",
                container.name
            );
            let was_running = container.is_running();
            let container = &mut self.containers[i];
            container.image = image;
            container.has_other_image = true;
            if container.runs == 0 && container.failed_pulls == 0 {
                continue;
            }
            if was_running {
                self.tell(false, "Killing", message, Some(i));
                self.terminate(i, 0, None, "Completed", now);
            }
            self.containers[i].exits = 0;
            let timer = if self.timers.remove(&Timer::Pull(i)).is_some() {
                Timer::Pull(i)
            } else {
                Timer::Restart(i)
            };
            if timer == Timer::Pull(i) {
                // Tried at once, whether or not the old image was being backed off from.
                self.containers[i].state = State::Waiting {
                    reason: "ImagePullBackOff",
                    message: None,
                };
            }
            self.timers.insert(timer, now.at);
        }
        changed
    }

    /// Behaves otherwise from now on.
    fn behave(&mut self, behaviour: PodBehaviour, now: Now<'_>) {
        let old = std::mem::replace(&mut self.behaviour, behaviour);
        match self.stage {
            Stage::Creating => {
                let never = Outcome::NeverStarts;
                if self.behaviour.outcome == never {
                    self.timers.remove(&Timer::Start);
                } else if old.outcome == never {
                    self.set(Timer::Start, self.behaviour.start_delay, now);
                }
            }
            Stage::Running => self.behave_while_running(&old, now),
            Stage::Stopping if old.stop != self.behaviour.stop => {
                self.stage = Stage::Running;
                self.begin_to_stop(Duration::ZERO, now);
            }
            Stage::Stopping | Stage::Stopped | Stage::Ended => {}
        }
    }

    fn behave_while_running(&mut self, old: &PodBehaviour, now: Now<'_>) {
        let outcome = self.behaviour.outcome;
        for i in 0..self.containers.len() {
            let container = &mut self.containers[i];
            if self.behaviour.crash != old.crash {
                container.crashes = 0;
            }
            if !container.is_running() {
                continue;
            }
            if self.behaviour.crash != old.crash {
                self.plan_crash(i, now);
            }
            if outcome != old.outcome && self.containers[i].role == Role::Main {
                self.change_outcome(i, now);
            }
        }
        if self.behaviour.flap != old.flap {
            self.flaps = 0;
            let was_flapping = self.timers.remove(&Timer::Flap).is_some();
            if outcome == Outcome::Ready && was_flapping {
                self.set_ready(true, now);
            } else if self
                .containers
                .iter()
                .any(|c| c.role == Role::Main && c.ready)
            {
                self.plan_flap(now);
            }
        }
    }

    fn change_outcome(&mut self, i: usize, now: Now<'_>) {
        match self.behaviour.outcome {
            Outcome::Ready => {
                self.timers.remove(&Timer::End);
                if !self.containers[i].ready {
                    self.plan_readiness(i, now);
                }
            }
            Outcome::Fails | Outcome::Succeeds => self.plan_readiness(i, now),
            Outcome::NeverReady => {
                self.timers.remove(&Timer::End);
                self.timers.remove(&Timer::Ready(i));
                self.timers.remove(&Timer::Flap);
                self.containers[i].ready = false;
            }
            Outcome::NeverStarts => {}
        }
    }

    /// Makes the running containers ready, or not.
    pub(super) fn set_ready(&mut self, ready: bool, now: Now<'_>) {
        for i in 0..self.containers.len() {
            let container = &mut self.containers[i];
            if container.role == Role::Main && container.is_running() {
                container.ready = ready;
                self.timers.remove(&Timer::Ready(i));
                if !ready {
                    self.tell_unready(i);
                }
            }
        }
        self.timers.remove(&Timer::Flap);
        if ready {
            self.plan_flap(now);
        }
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|c| c["type"] == "Ready" && c["status"] == "True")
}

fn image_of<'a>(pod: &'a Value, container: &Container) -> Option<&'a str> {
    let list = if container.role == Role::Main {
        "/spec/containers"
    } else {
        "/spec/initContainers"
    };
    let mut specs = pod.pointer(list)?.as_array()?.iter();
    let spec = specs.find(|spec| spec["name"] == *container.name)?;
    spec.get("image")?.as_str()
}
