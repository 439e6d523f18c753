//! The disruption controller: counts for each budget how many of its pods are healthy and how many
//! may be disrupted, which is what evictions go by.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use http::Method;
use kube_apimachinery::selector::{LabelSelector, Selector};
use kube_apimachinery::time;
use serde_json::{Map, Value, json};

use super::agenda::Agenda;
use super::client::ActorClient;
use super::node_controller::ready;
use super::runner::{Actor, Work};
use crate::kinds;
use crate::object::{Key, Object};
use crate::store::{Change, LogEntry};

const BUDGETS: &str = "poddisruptionbudgets";

/// How long a pod that was evicted counts as disrupted though it isn't being deleted.
const EVICTION_COUNTS: Duration = Duration::from_secs(120);

/// Counts what may be disrupted.
#[derive(Debug)]
pub(super) struct DisruptionController {
    client: ActorClient,
    /// The budgets of each namespace.
    budgets: BTreeMap<Arc<str>, BTreeSet<Key>>,
}

/// What is counted for a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    expected: i64,
    desired: i64,
    healthy: i64,
}

impl DisruptionController {
    pub(super) fn new(client: ActorClient) -> Self {
        Self {
            client,
            budgets: BTreeMap::new(),
        }
    }

    /// The pods that a budget is about.
    fn pods(&self, key: &Key, budget: &Value) -> Vec<Arc<Object>> {
        let selector = budget.pointer("/spec/selector").filter(|s| !s.is_null());
        let selector = selector
            .and_then(|selector| serde_json::from_value::<LabelSelector>(selector.clone()).ok())
            .and_then(|selector| Selector::from_label_selector(Some(&selector)).ok());
        let mut pods = self.client.list("pods", &key.namespace);
        pods.retain(|pod| selector.as_ref().is_some_and(|s| s.matches(&pod.labels)));
        pods
    }

    /// How many pods there should be: the sum of what their controllers want.
    fn expected(&self, namespace: &str, pods: &[Value]) -> i64 {
        let mut controllers: BTreeMap<String, i64> = BTreeMap::new();
        for pod in pods {
            let Some((uid, scale)) = self.controller(namespace, pod) else {
                continue;
            };
            controllers.insert(uid, scale);
        }
        let scales = controllers.into_values();
        scales.fold(0, i64::saturating_add)
    }

    /// The controller of an object that says how many there are to be: its uid and the number.
    fn controller(&self, namespace: &str, object: &Value) -> Option<(String, i64)> {
        let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
        let owner = owners.iter().find(|owner| owner["controller"] == true)?;
        let text = |member: &str| owner.get(member).and_then(Value::as_str);
        let kind = kinds::by_kind(text("apiVersion")?, text("kind")?)?;
        let key = Key::new(kind, namespace, text("name")?);
        let owner = self.client.get(&key)?.value();
        // The replica sets of a deployment come and go; the deployment tells.
        if let Some(above) = self.controller(namespace, &owner) {
            return Some(above);
        }
        let replicas = owner.pointer("/spec/replicas")?.as_i64()?;
        let uid = owner.pointer("/metadata/uid")?.as_str()?;
        Some((uid.to_owned(), replicas))
    }

    /// The pods that were evicted and are not yet being deleted.
    fn disrupted(&self, budget: &Value, pods: &[Value]) -> Map<String, Value> {
        let noted = budget.pointer("/status/disruptedPods");
        let mut noted = noted
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let now = self.client.server.now();
        noted.retain(|name, since| {
            let is_there = pods.iter().any(|pod| {
                pod["metadata"]["name"] == **name
                    && pod.pointer("/metadata/deletionTimestamp").is_none()
            });
            let since = since.as_str().and_then(|since| time::parse(since).ok());
            let recent =
                since.is_some_and(|s| now.duration_since(s).unsigned_abs() < EVICTION_COUNTS);
            is_there && recent
        });
        noted
    }

    fn status(&self, key: &Key, budget: &Value) -> Value {
        let objects = self.pods(key, budget);
        let pods: Vec<Value> = objects.iter().map(|pod| pod.value()).collect();
        let disrupted = self.disrupted(budget, &pods);
        let is_healthy = |pod: &&Value| {
            let name = pod.pointer("/metadata/name").and_then(Value::as_str);
            pod.pointer("/metadata/deletionTimestamp").is_none()
                && ready(pod) == "True"
                && name.is_none_or(|name| !disrupted.contains_key(name))
        };
        let healthy = count(pods.iter().filter(is_healthy).count());
        let spec = |member: &str| budget.get("spec")?.get(member).filter(|v| !v.is_null());
        let (expected, desired) = match (spec("minAvailable"), spec("maxUnavailable")) {
            (Some(Value::Number(number)), _) => {
                (count(pods.len()), number.as_i64().unwrap_or_default())
            }
            (Some(least), _) => {
                let expected = self.expected(&key.namespace, &pods);
                (expected, scaled(least, expected))
            }
            (None, Some(most)) => {
                let expected = self.expected(&key.namespace, &pods);
                (
                    expected,
                    expected.saturating_sub(scaled(most, expected)).max(0),
                )
            }
            (None, None) => (0, 0),
        };
        let counted = Count {
            expected,
            desired,
            healthy,
        };
        let generation = budget.pointer("/metadata/generation");
        let mut status = json!({
            "observedGeneration": generation,
            "disruptionsAllowed": counted.allowed(),
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "conditions": [self.condition(budget, counted)],
        });
        let before = budget.pointer("/status/disruptedPods");
        if !disrupted.is_empty() || before.is_some() {
            let mut patch = json!({"$patch": "replace"});
            for (name, since) in disrupted {
                patch[name] = since;
            }
            status["disruptedPods"] = patch;
        }
        status
    }

    fn condition(&self, budget: &Value, counted: Count) -> Value {
        let is_allowed = counted.allowed() > 0;
        let status = if is_allowed { "True" } else { "False" };
        let reason = if is_allowed {
            "SufficientPods"
        } else {
            "InsufficientPods"
        };
        let conditions = budget
            .pointer("/status/conditions")
            .and_then(Value::as_array);
        let mut conditions = conditions.into_iter().flatten();
        let old = conditions.find(|c| c["type"] == "DisruptionAllowed" && c["status"] == status);
        let since = old.and_then(|old| old.get("lastTransitionTime")).cloned();
        json!({
            "type": "DisruptionAllowed",
            "status": status,
            "observedGeneration": budget.pointer("/metadata/generation"),
            "lastTransitionTime": since.unwrap_or(json!(self.client.server.now_text())),
            "reason": reason,
            "message": "",
        })
    }
}

impl Count {
    fn allowed(self) -> i64 {
        if self.expected <= 0 {
            return 0;
        }
        self.healthy.saturating_sub(self.desired).max(0)
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number, or a percentage of another one, rounded up.
fn scaled(value: &Value, whole: i64) -> i64 {
    let percent = value.as_str().and_then(|text| text.strip_suffix('%'));
    let percent = percent.and_then(|percent| percent.parse::<i64>().ok());
    match percent {
        Some(percent) => percent.saturating_mul(whole).saturating_add(99) / 100,
        None => value.as_i64().unwrap_or_default(),
    }
}

/// Whether a budget says all this already.
fn says(budget: &Value, status: &Value) -> bool {
    let Some(status) = status.as_object() else {
        return true;
    };
    status.iter().all(|(member, value)| {
        let found = budget.get("status").and_then(|found| found.get(member));
        match (member.as_str(), value.as_object()) {
            ("disruptedPods", Some(wanted)) => {
                let found = found.and_then(Value::as_object);
                found.is_some_and(|found| found.len() + 1 == wanted.len())
            }
            _ => found == Some(value),
        }
    })
}

impl Actor for DisruptionController {
    type Order = Infallible;
    type Done = ();

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let key = &entry.object.key;
        if key.storage == BUDGETS {
            let namespace = Arc::clone(&key.namespace);
            let budgets = self.budgets.entry(namespace).or_default();
            if entry.change == Change::Deleted {
                budgets.remove(key);
            } else {
                budgets.insert(key.clone());
                agenda.now(key);
            }
        } else if matches!(
            key.storage,
            "pods" | "statefulsets" | "replicasets" | "deployments"
        ) {
            for budget in self.budgets.get(&key.namespace).into_iter().flatten() {
                agenda.now(budget);
            }
        }
    }

    fn act(&mut self, key: &Key, agenda: &mut Agenda) -> Option<Work<()>> {
        let object = self.client.get(key)?;
        let budget = object.value();
        let status = self.status(key, &budget);
        if status.get("disruptedPods").is_some() {
            agenda.after(key, EVICTION_COUNTS);
        }
        if says(&budget, &status) {
            return None;
        }
        let patch = json!({
            "metadata": {
                "uid": *object.uid,
                "resourceVersion": object.resource_version.to_string(),
            },
            "status": status,
        });
        let client = self.client.clone();
        let (key, uid) = (object.key.clone(), object.uid.clone());
        Some(
            async move {
                let object = (&key, &*uid);
                let done = client.send(Method::PATCH, object, "/status", &patch);
                done.await.then_some(())
            }
            .boxed(),
        )
    }

    fn obey(&mut self, order: Infallible, _: &mut Agenda) {
        match order {}
    }

    fn begin_again(&mut self) {
        self.budgets.clear();
    }
}
