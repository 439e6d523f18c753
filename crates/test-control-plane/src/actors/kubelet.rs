//! The kubelet of every node: starts pods, makes them ready, stops them.

mod behaviour;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

pub use behaviour::{BehaviourRule, KubeletConfig, Outcome, PodBehaviour, parse_duration};

use super::agenda::Agenda;
use super::client::ActorClient;
use super::runner::Actor;
use super::volume_binder::claims_are_bound;
use crate::object::{Key, Object};
use crate::store::{Change, LogEntry};

/// What is to be done next with a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Start its containers.
    Start,
    /// Report it ready.
    BecomeReady,
    /// Report it not ready, because its annotations now say so.
    BecomeUnready,
    /// End it in the phase Failed.
    Fail,
    /// End it in the phase Succeeded.
    Succeed,
    /// Stop its containers and remove it.
    Stop,
}

/// What is remembered of a pod.
#[derive(Clone, Copy, Debug)]
struct Plan {
    step: Step,
    at: Instant,
}

/// The kubelet.
#[derive(Debug)]
pub(super) struct Kubelet {
    client: ActorClient,
    config: KubeletConfig,
    waits_for_claims: bool,
    /// By uid: when the next step is due.
    plans: BTreeMap<Box<str>, Plan>,
    /// By uid: pods that were made ready once, with the outcome that was in force.
    reported: BTreeMap<Box<str>, Outcome>,
    /// Pods whose claims aren't bound yet.
    waiting: BTreeSet<Key>,
    next_address: u32,
}

impl Kubelet {
    pub(super) fn new(client: ActorClient, config: KubeletConfig, waits_for_claims: bool) -> Self {
        Self {
            client,
            config,
            waits_for_claims,
            plans: BTreeMap::new(),
            reported: BTreeMap::new(),
            waiting: BTreeSet::new(),
            next_address: 0,
        }
    }

    /// The next step of a pod and how long to wait with it.
    fn next_step(&self, object: &Object, pod: &Value) -> Option<(Step, Duration)> {
        let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let behaviour = self.config.behaviour(pod);
        if text("/spec/nodeName").is_empty() {
            return None;
        }
        if object.deleting {
            let grace = pod
                .pointer("/metadata/deletionGracePeriodSeconds")
                .and_then(Value::as_u64);
            let grace = Duration::from_secs(grace.unwrap_or(0));
            return Some((Step::Stop, behaviour.stop_delay.min(grace)));
        }
        let outcome = behaviour.outcome;
        match text("/status/phase") {
            "" | "Pending" if outcome != Outcome::NeverStarts => {
                Some((Step::Start, behaviour.start_delay))
            }
            "Running" => {
                let step = match outcome {
                    Outcome::Fails => Step::Fail,
                    Outcome::Succeeds => Step::Succeed,
                    _ => self.readiness_step(object, pod, outcome)?,
                };
                Some((step, behaviour.ready_delay))
            }
            _ => None,
        }
    }

    /// Readiness is reported once; after that only a change of the annotations changes it, so
    /// that a test may set the condition itself.
    fn readiness_step(&self, object: &Object, pod: &Value, outcome: Outcome) -> Option<Step> {
        let ready = status::condition_is_true(pod, "Ready");
        let changed = self.reported.get(&object.uid) != Some(&outcome);
        match outcome {
            Outcome::Ready if !ready && changed && status::gates_are_open(pod) => {
                Some(Step::BecomeReady)
            }
            Outcome::NeverReady if ready && changed => Some(Step::BecomeUnready),
            _ => None,
        }
    }

    fn plan(&mut self, object: &Object, agenda: &mut Agenda) {
        let pod = object.value();
        let Some((step, delay)) = self.next_step(object, &pod) else {
            self.plans.remove(&object.uid);
            return;
        };
        let at = match self.plans.get(&object.uid) {
            Some(plan) if plan.step == step => plan.at,
            _ => Instant::now() + delay,
        };
        self.plans.insert(object.uid.clone(), Plan { step, at });
        agenda.at(&object.key, at);
    }

    async fn take_step(&mut self, object: &Object, pod: &Value, step: Step) -> bool {
        let now = self.client.server.now_text();
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}",
            object.key.namespace, object.key.name
        );
        let status = match step {
            Step::Start => {
                self.next_address += 1;
                status::started(pod, &now, self.next_address)
            }
            Step::BecomeReady => status::with_readiness(pod, &now, true),
            Step::BecomeUnready => status::with_readiness(pod, &now, false),
            Step::Fail => status::ended(pod, &now, "Failed"),
            Step::Succeed => status::ended(pod, &now, "Succeeded"),
            Step::Stop => return self.stop(object, pod, &now, &path).await,
        };
        if matches!(step, Step::BecomeReady | Step::BecomeUnready) {
            let outcome = self.config.behaviour(pod).outcome;
            self.reported.insert(object.uid.clone(), outcome);
        }
        self.patch_status(object, &path, status).await
    }

    async fn patch_status(&self, object: &Object, path: &str, status: Value) -> bool {
        let body = json!({"metadata": {"uid": *object.uid}, "status": status});
        self.client
            .send(Method::PATCH, &format!("{path}/status"), &body)
            .await
    }

    async fn stop(&self, object: &Object, pod: &Value, now: &str, path: &str) -> bool {
        if status::condition_is_true(pod, "Ready") {
            let stopped = status::stopped(pod, now);
            if !self.patch_status(object, path, stopped).await {
                return false;
            }
        }
        let body = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": *object.uid},
        });
        self.client.send(Method::DELETE, path, &body).await
    }
}

impl Actor for Kubelet {
    type Order = Infallible;

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let object = &entry.object;
        match object.key.storage {
            "pods" if entry.change == Change::Deleted => {
                self.plans.remove(&object.uid);
                self.reported.remove(&object.uid);
                self.waiting.remove(&object.key);
            }
            "pods" => self.plan(object, agenda),
            "persistentvolumeclaims" => {
                for pod in self
                    .waiting
                    .iter()
                    .filter(|p| p.namespace == object.key.namespace)
                {
                    agenda.now(pod);
                }
            }
            _ => {}
        }
    }

    async fn act(&mut self, key: &Key, agenda: &mut Agenda) {
        let Some(object) = self.client.get(key) else {
            return;
        };
        self.plan(&object, agenda);
        let Some(plan) = self.plans.get(&object.uid).copied() else {
            return;
        };
        if plan.at > Instant::now() {
            return;
        }
        agenda.remove(key);
        let pod = object.value();
        self.waiting.remove(key);
        if plan.step == Step::Start
            && self.waits_for_claims
            && !claims_are_bound(&self.client, &pod, &key.namespace)
        {
            self.waiting.insert(key.clone());
            return;
        }
        if plan.step == Step::Stop && is_held(&pod) {
            // The containers have stopped; whoever holds the object lets it go.
            return;
        }
        if self.take_step(&object, &pod, plan.step).await {
            self.plans.remove(&object.uid);
        } else {
            agenda.retry(key);
        }
    }

    fn obey(&mut self, order: Infallible, _: &mut Agenda) {
        match order {}
    }

    fn begin_again(&mut self) {}
}

/// Whether a pod has been stopped before and is held by finalizers only.
fn is_held(pod: &Value) -> bool {
    let grace = pod.pointer("/metadata/deletionGracePeriodSeconds");
    let finalizers = pod
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array);
    grace == Some(&json!(0)) && finalizers.is_some_and(|list| !list.is_empty())
}
