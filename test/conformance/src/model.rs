//! A second, sequential implementation of the specification: one sync of a stateful set on a frozen
//! cluster.
//!
//! The model is an oracle. It shares no decision with the product: it works on plain JSON, reads
//! caches that never change, and writes to an object tracker instead of a server. With every rule
//! of [`Rules`] off it is the reference, and must reproduce each recorded expectation in full; each
//! rule enables one deliberate deviation. The difference between two runs of the model is therefore
//! exactly what a deviation alters, also in unforeseen cases, and nothing else is exempted.
//!
//! From the crates it uses only encodings, schema, defaults, hashes and selectors: API rules with
//! their own recordings.

mod claiming;
mod claims;
mod cluster;
mod failure;
mod object;
mod owners;
mod phases;
mod pods;
mod recreate;
mod revisions;
mod set;
mod status;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use kube_apimachinery::selector::{LabelSelector, Selector};
use serde_json::Value;
use statefulset_client::fake::Verb;

use self::cluster::{Asked, Kind, Tracker, load};
use self::failure::Failure;
use self::set::Set;
use crate::outcome::{ClaimVolumes, Outcome, comparable};
use crate::requests;
use crate::sync_case::Case;

/// Switches of the deliberate deviations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each rule is independent of the others"
)]
pub struct Rules {
    /// Pods with names like the set's but not canonical (`web-007`, ordinals beyond 32 bits) are
    /// ignored and stay untouched.
    pub canonical_names: bool,
    /// Status writes keep the conditions.
    pub keep_conditions: bool,
    /// Counters don't fall below 0 when a pod is deleted.
    pub counters_not_negative: bool,
    /// Renumbering a revision is retried on conflict, with at most four attempts.
    pub retry_renumbering: bool,
    /// The live set is read before a claim gets an owner, and before a pod is deleted with its
    /// claims.
    pub live_set_before_dooming: bool,
    /// A wanted pod that has ended or is terminating is removed from the owners of its claims.
    pub take_claims_from_wanted: bool,
    /// References to earlier sets and pods go from a claim's owners with that to the set or the pod.
    pub release_stale_owners: bool,
    /// Deletions specify the object's uid.
    pub deletions_name_objects: bool,
    /// Members unknown to the schema are recorded and kept, and restart nothing.
    pub unknown_members: bool,
}

impl Rules {
    /// The reference: no deviations.
    pub const REFERENCE: Self = Self {
        canonical_names: false,
        keep_conditions: false,
        counters_not_negative: false,
        retry_renumbering: false,
        live_set_before_dooming: false,
        take_claims_from_wanted: false,
        release_stale_owners: false,
        deletions_name_objects: false,
        unknown_members: false,
    };

    /// The product: all deviations.
    pub const PRODUCT: Self = Self {
        canonical_names: true,
        keep_conditions: true,
        counters_not_negative: true,
        retry_renumbering: true,
        live_set_before_dooming: true,
        take_claims_from_wanted: true,
        release_stale_owners: true,
        deletions_name_objects: true,
        unknown_members: true,
    };
}

/// Runs the case's sync with these rules, and returns the outcome.
///
/// # Errors
///
/// The case has objects of an unsupported kind.
pub fn run(case: &Case, rules: Rules) -> anyhow::Result<Outcome> {
    let cluster = load(case, rules)?;
    let Some(set) = cluster.set else {
        return outcome(case, Ok(None), Vec::new(), &cluster.api);
    };
    let minor = case.version()?.minor;
    let mut sync = Sync {
        rules,
        now: case.now,
        minor,
        max_unavailable_gate: gate(case, "MaxUnavailableStatefulSet", minor >= 37),
        recreate_gate: gate(case, "StatefulSetRecreateStrategy", false),
        scale_down_first: gate(case, "PreviewParallelScaleDownFirst", false),
        semantic_gate: gate(case, "StatefulSetSemanticRevisionComparison", true),
        set: Rc::new(Set::of(set)),
        pods: cluster.pods,
        claims: cluster.claims,
        revisions: cluster.revisions,
        api: cluster.api,
        events: Vec::new(),
    };
    let result = sync.run();
    if !case.events_are_ordered()? {
        sync.events.sort();
    }
    outcome(case, result, sync.events, &sync.api)
}

/// API requests, in comparable form.
fn requests(api: &Tracker, claims: &ClaimVolumes) -> anyhow::Result<Vec<Value>> {
    let request = |asked: &Asked| {
        let mut body = match asked.verb {
            Verb::Create | Verb::Update => requests::body(&asked.body.to_string(), claims)?,
            _ => asked.body.clone(),
        };
        if asked.kind == Kind::Revision && asked.body.get("data").is_some() {
            body["data"] = asked.body["data"].clone();
        }
        let (verb, resource) = (asked.verb.to_string(), asked.kind.resource());
        let (subresource, name) = (&asked.subresource, &asked.name);
        anyhow::Ok(requests::request(&verb, resource, subresource, name, body))
    };
    api.requests.iter().map(request).collect()
}

fn gate(case: &Case, name: &str, default: bool) -> bool {
    case.feature_gates.get(name).copied().unwrap_or(default)
}

/// Outcome of a sync with the API's objects, in comparable form.
fn outcome(
    case: &Case,
    result: Result<Option<SignedDuration>, Failure>,
    events: Vec<String>,
    api: &Tracker,
) -> anyhow::Result<Outcome> {
    let claims = &case.claim_volumes()?;
    let mut requests = requests(api, claims)?;
    if case.events_are_ordered()? {
        requests::sort_neighbours(&mut requests);
    } else {
        requests::sort(&mut requests);
    }
    let mut objects = BTreeMap::new();
    for object in api.objects() {
        let (key, mut value) = comparable(&object.to_string(), claims).context("an object")?;
        if object["kind"] == Kind::Revision.name() {
            // The model stores revision data as text.
            value["data"] = object.get("data").cloned().unwrap_or_default();
        }
        objects.insert(key, value);
    }
    let failed = result.is_err();
    let requeue_after = result.ok().flatten().map(status::go_duration);
    Ok(Outcome {
        failed,
        requeue_after,
        events,
        requests,
        objects,
    })
}

/// State of one sync: caches, API and events so far.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each gate is independent of the others"
)]
struct Sync {
    rules: Rules,
    now: Timestamp,
    /// Minor version of the emulated Kubernetes.
    minor: u32,
    max_unavailable_gate: bool,
    recreate_gate: bool,
    scale_down_first: bool,
    semantic_gate: bool,
    /// Cached set.
    set: Rc<Set>,
    /// Cached pods of the set's namespace, in the order of the case.
    pods: Vec<Value>,
    /// Cached claims of the set's namespace, by name.
    claims: BTreeMap<String, Value>,
    /// Cached revisions of the set's namespace, with their data as text.
    revisions: Vec<Value>,
    api: Tracker,
    events: Vec<String>,
}

/// Decision to continue or to end a walk over pods.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Continue,
    Exit,
}

impl Sync {
    /// Runs the whole sync; returns the requested delayed requeue.
    fn run(&mut self) -> Result<Option<SignedDuration>, Failure> {
        let selector = self
            .set
            .value
            .pointer("/spec/selector")
            .filter(|given| !given.is_null());
        let selector: Option<LabelSelector> = selector
            .cloned()
            .map(serde_json::from_value)
            .transpose()
            .unwrap_or_default();
        // A retry would not fix the selector.
        let Ok(selector) = Selector::from_label_selector(selector.as_ref()) else {
            return Ok(None);
        };
        self.adopt_revisions(&selector)?;
        let pods = self.claim_pods(&selector)?;
        let revisions = self.list_revisions(&selector);
        let status = self.update(&pods, &revisions)?;
        Ok(self.requeue_after(&pods, &status))
    }

    fn event(&mut self, result: Result<(), String>, reason: &str, message: &str) {
        let mut message = message.to_owned();
        if self.minor < 35 {
            // The message begins with an ASCII letter.
            message[..1].make_ascii_lowercase();
        }
        self.events.push(match result {
            Ok(()) => format!("Normal Successful{reason} {message}"),
            Err(error) => format!("Warning Failed{reason} {message} error: {error}"),
        });
    }

    /// Preconditions of a deletion.
    fn deletion_preconditions(&self, object: &Value, members: &[&str]) -> Value {
        if !self.rules.deletions_name_objects {
            return Value::Null;
        }
        let text = |name: &str| object["metadata"][name].as_str().unwrap_or("");
        let member = |name: &&str| ((*name).to_owned(), Value::from(text(name)));
        Value::Object(members.iter().map(member).collect())
    }

    /// Returns true if pods are processed in batches.
    fn is_burst(&self) -> bool {
        self.set.is_burst
    }

    /// Calls a function for `count` pods: in sequence until one requests a stop, or in batches of
    /// 1, 2, 4… that stop after the first batch with a failure.
    fn for_all(
        &mut self,
        count: usize,
        mut work: impl FnMut(&mut Self, usize) -> Result<Step, Failure>,
    ) -> Result<Step, Failure> {
        if !self.is_burst() {
            for index in 0..count {
                if work(self, index)? == Step::Exit {
                    return Ok(Step::Exit);
                }
            }
            return Ok(Step::Continue);
        }
        let (mut done, mut size) = (0, count.min(1));
        while size > 0 {
            let batch: Vec<usize> = (done..done + size).collect();
            self.in_parallel(&batch, &mut work)?;
            done += size;
            size = (2 * size).min(count - done).min(500);
        }
        Ok(Step::Continue)
    }

    /// Calls a function for each index of a batch. Of the parallel calls, the reference makes the
    /// last one first.
    fn in_parallel<T>(
        &mut self,
        batch: &[usize],
        mut work: impl FnMut(&mut Self, usize) -> Result<T, Failure>,
    ) -> Result<(), Failure> {
        let Some((last, before)) = batch.split_last() else {
            return Ok(());
        };
        let order = std::iter::once(last).chain(before);
        let failures = order.filter_map(|index| work(self, *index).err()).collect();
        Failure::join(failures)
    }
}
