//! The disruption controller: counts the healthy pods of each budget and the disruptions it allows.
//! The eviction API enforces these counts.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use http::Method;
use kube_apimachinery::labels::Labels;
use kube_apimachinery::selector::{LabelSelector, Selector};
use kube_apimachinery::time;
use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::members::{list_at, text, text_at};
use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_store::store::{Change, LogEntry};
use serde_json::{Map, Value, json};

use super::client::ActorClient;
use super::node_controller::ready;
use super::runner::{Actor, Agenda, Work};

const BUDGETS: &str = "poddisruptionbudgets";

/// Time for which an evicted pod counts as disrupted before its deletion is seen.
const EVICTION_COUNTS: Duration = Duration::from_secs(120);

/// Keeps the status of disruption budgets up to date.
#[derive(Debug)]
pub(super) struct DisruptionController {
    client: ActorClient,
    /// The budgets of each namespace with their selectors.
    budgets: BTreeMap<Arc<str>, BTreeMap<Key, Option<Selector>>>,
    /// The relevant facts about pods in namespaces with budgets.
    pods: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Pod>>,
}

/// The facts about a pod that affect budgets.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pod {
    labels: Labels,
    deleting: bool,
    ready: bool,
    controller: Option<Controller>,
}

/// Reference to an object's controller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Controller {
    api_version: String,
    kind: String,
    name: String,
}

impl Controller {
    fn of(object: &Value) -> Option<Self> {
        let mut owners = list_at(object, "/metadata/ownerReferences");
        let owner = owners.find(|owner| owner["controller"] == true)?;
        Some(Self {
            api_version: text(owner, "apiVersion").to_owned(),
            kind: text(owner, "kind").to_owned(),
            name: text(owner, "name").to_owned(),
        })
    }
}

impl Pod {
    fn of(object: &Object) -> Self {
        let pod = object.value();
        Self {
            labels: object.labels.clone(),
            deleting: object.deleting,
            ready: ready(&pod) == "True",
            controller: Controller::of(&pod),
        }
    }
}

/// The status counts of a budget.
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
            pods: BTreeMap::new(),
        }
    }

    /// Returns the pods that a budget selects, by name.
    fn pods(&self, key: &Key) -> BTreeMap<&str, &Pod> {
        let budgets = self.budgets.get(&key.namespace);
        let selector = budgets.and_then(|budgets| budgets.get(key)?.as_ref());
        let pods = self.pods.get(&key.namespace).into_iter().flatten();
        pods.filter(|(_, pod)| selector.is_some_and(|s| s.matches(&pod.labels)))
            .map(|(name, pod)| (&**name, pod))
            .collect()
    }

    /// Returns the expected number of pods: the sum of their controllers' scales.
    fn expected(&self, namespace: &str, pods: &BTreeMap<&str, &Pod>) -> i64 {
        let controllers: BTreeSet<&Controller> = pods
            .values()
            .filter_map(|pod| pod.controller.as_ref())
            .collect();
        let scales: BTreeMap<String, i64> = controllers
            .into_iter()
            .filter_map(|controller| self.scale(namespace, controller))
            .collect();
        scales.into_values().fold(0, i64::saturating_add)
    }

    /// Returns the uid and the desired replicas of a controller.
    fn scale(&self, namespace: &str, controller: &Controller) -> Option<(String, i64)> {
        let kind = kinds::by_kind(&controller.api_version, &controller.kind)?;
        let key = Key::new(kind, namespace, &controller.name);
        let owner = self.client.get(&key)?.value();
        // A deployment replaces its replica sets, so its own scale counts.
        let above = Controller::of(&owner);
        if let Some(above) = above.and_then(|above| self.scale(namespace, &above)) {
            return Some(above);
        }
        let replicas = owner.pointer("/spec/replicas")?.as_i64()?;
        Some((text_at(&owner, "/metadata/uid").to_owned(), replicas))
    }

    /// Stores a budget and starts to track the pods of its namespace.
    fn note_budget(&mut self, budget: &Object) {
        let namespace = &budget.key.namespace;
        if !self.budgets.contains_key(namespace) {
            let pods = self.client.list("pods", namespace);
            let pods = pods
                .iter()
                .map(|pod| (Arc::clone(&pod.key.name), Pod::of(pod)));
            self.pods.insert(Arc::clone(namespace), pods.collect());
        }
        let selector = budget.value();
        let selector = selector.pointer("/spec/selector").filter(|s| !s.is_null());
        let selector = selector
            .and_then(|selector| serde_json::from_value::<LabelSelector>(selector.clone()).ok())
            .and_then(|selector| Selector::from_label_selector(Some(&selector)).ok());
        let budgets = self.budgets.entry(Arc::clone(namespace)).or_default();
        budgets.insert(budget.key.clone(), selector);
    }

    fn forget_budget(&mut self, key: &Key) {
        let budgets = self.budgets.get_mut(&key.namespace);
        let is_last = budgets.is_some_and(|budgets| {
            budgets.remove(key);
            budgets.is_empty()
        });
        if is_last {
            self.budgets.remove(&key.namespace);
            self.pods.remove(&key.namespace);
        }
    }

    /// Stores a pod, and schedules its budgets if the change affects them.
    fn note_pod(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let key = &entry.object.key;
        let (Some(budgets), Some(pods)) = (
            self.budgets.get(&key.namespace),
            self.pods.get_mut(&key.namespace),
        ) else {
            return;
        };
        let after = (entry.change != Change::Deleted).then(|| Pod::of(&entry.object));
        let before = match after.clone() {
            Some(pod) => pods.insert(Arc::clone(&key.name), pod),
            None => pods.remove(&key.name),
        };
        if before == after {
            return;
        }
        for (budget, selector) in budgets {
            let is_meant = |pod: &Pod| selector.as_ref().is_some_and(|s| s.matches(&pod.labels));
            if before.iter().chain(&after).any(is_meant) {
                agenda.now(budget);
            }
        }
    }

    /// Schedules the affected budgets if a controller's scale has changed.
    fn note_controller(&self, entry: &LogEntry, agenda: &mut Agenda) {
        let key = &entry.object.key;
        let Some(budgets) = self.budgets.get(&key.namespace) else {
            return;
        };
        let replicas = |object: &Object| object.value().pointer("/spec/replicas").cloned();
        let before = entry.previous.as_ref().map(|previous| replicas(previous));
        let is_same = entry.change == Change::Modified
            && before.is_some_and(|before| before == replicas(&entry.object));
        if !is_same {
            for budget in budgets.keys() {
                agenda.now(budget);
            }
        }
    }

    /// Returns the evicted pods that are not yet terminating.
    fn disrupted(&self, budget: &Value, pods: &BTreeMap<&str, &Pod>) -> Map<String, Value> {
        let noted = budget.pointer("/status/disruptedPods");
        let mut noted = noted
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let now = self.client.server.now();
        noted.retain(|name, since| {
            let is_there = pods.get(&**name).is_some_and(|pod| !pod.deleting);
            let since = since.as_str().and_then(|since| time::parse(since).ok());
            let recent =
                since.is_some_and(|s| now.duration_since(s).unsigned_abs() < EVICTION_COUNTS);
            is_there && recent
        });
        noted
    }

    fn status(&self, key: &Key, budget: &Value) -> Value {
        let pods = self.pods(key);
        let disrupted = self.disrupted(budget, &pods);
        let is_healthy = |(name, pod): &(&&str, &&Pod)| {
            !pod.deleting && pod.ready && !disrupted.contains_key(**name)
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

/// Resolves a number, or a percentage of `whole` rounded up.
fn scaled(value: &Value, whole: i64) -> i64 {
    let percent = value.as_str().and_then(|text| text.strip_suffix('%'));
    let percent = percent.and_then(|percent| percent.parse::<i64>().ok());
    match percent {
        Some(percent) => percent.saturating_mul(whole).saturating_add(99) / 100,
        None => value.as_i64().unwrap_or_default(),
    }
}

/// Reports whether a budget already has this status.
fn has_status(budget: &Value, status: &Value) -> bool {
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
        match &*key.storage {
            BUDGETS if entry.change == Change::Deleted => self.forget_budget(key),
            BUDGETS => {
                self.note_budget(&entry.object);
                agenda.now(key);
            }
            "pods" => self.note_pod(entry, agenda),
            "statefulsets" | "replicasets" | "deployments" => {
                self.note_controller(entry, agenda);
            }
            _ => {}
        }
    }

    fn act(&mut self, key: &Key, agenda: &mut Agenda) -> Option<Work<()>> {
        let object = self.client.get(key)?;
        let budget = object.value();
        let status = self.status(key, &budget);
        if status.get("disruptedPods").is_some() {
            agenda.after(key, EVICTION_COUNTS);
        }
        if has_status(&budget, &status) {
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

    fn reset(&mut self) {
        self.budgets.clear();
        self.pods.clear();
    }
}
