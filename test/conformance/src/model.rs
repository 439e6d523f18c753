//! A second, sequential reading of the specification: what one sync of a stateful set does to a
//! frozen cluster.
//!
//! The model is an oracle. It shares no decision with the product: it works on plain JSON, reads
//! caches that never change, and writes to a tracker that is no server. With every rule of
//! [`Rules`] off it is the reference, and must give each recorded expectation in full; each rule
//! switches one deliberate deviation on. So the difference between two runs of the model is what a
//! deviation alters, in a case that nobody has foreseen too, and nothing beside it is excused.
//!
//! Of the crates it takes only encodings, schema, defaults, hashes and selectors: rules of the API,
//! which have recordings of their own.

mod claiming;
mod claims;
mod cluster;
mod failure;
mod object;
mod owners;
mod phases;
mod pods;
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

/// The deliberate deviations, each on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each rule is independent of the others"
)]
pub struct Rules {
    /// Pods that are named after the set but not canonically (`web-007`, ordinals past 32 bits)
    /// are as if they weren't there, and are left as they are.
    pub canonical_names: bool,
    /// A status write keeps the conditions.
    pub keep_conditions: bool,
    /// Counting a deleted pod off doesn't go below 0.
    pub counters_not_negative: bool,
    /// Renumbering a revision is tried again on a conflict, four times in all.
    pub retry_renumbering: bool,
    /// The live set is looked at before a claim gets an owner, and before a pod is deleted with
    /// its claims.
    pub live_set_before_dooming: bool,
    /// A wanted pod that has ended or is on its way out is no owner of its claims any more.
    pub take_claims_from_wanted: bool,
    /// Deletions say which object they mean.
    pub deletions_name_objects: bool,
    /// Members that the schema doesn't know are recorded and kept, and restart nothing.
    pub unknown_members: bool,
}

impl Rules {
    /// The reference.
    pub const REFERENCE: Self = Self {
        canonical_names: false,
        keep_conditions: false,
        counters_not_negative: false,
        retry_renumbering: false,
        live_set_before_dooming: false,
        take_claims_from_wanted: false,
        deletions_name_objects: false,
        unknown_members: false,
    };

    /// The product: every deviation.
    pub const PRODUCT: Self = Self {
        canonical_names: true,
        keep_conditions: true,
        counters_not_negative: true,
        retry_renumbering: true,
        live_set_before_dooming: true,
        take_claims_from_wanted: true,
        deletions_name_objects: true,
        unknown_members: true,
    };
}

/// Does the case's sync by these rules, and returns what it leaves behind.
///
/// # Errors
///
/// The case has objects that are none of a cluster.
pub fn run(case: &Case, rules: Rules) -> anyhow::Result<Outcome> {
    let cluster = load(case, rules)?;
    let Some(set) = cluster.set else {
        return outcome(case, Ok(None), Vec::new(), &cluster.api);
    };
    let mut sync = Sync {
        rules,
        now: case.now,
        max_unavailable_gate: gate(case, "MaxUnavailableStatefulSet", false),
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

/// What was asked of the API, in the form in which it is compared.
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

/// A result with what the API holds, in the form in which it is compared.
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
            // In here the data is text already.
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

/// One sync: what it sees, what it writes to, and what it has said so far.
struct Sync {
    rules: Rules,
    now: Timestamp,
    max_unavailable_gate: bool,
    semantic_gate: bool,
    /// The cached set.
    set: Rc<Set>,
    /// The cached pods of the set's namespace, in the order of the case.
    pods: Vec<Value>,
    /// The cached claims of the set's namespace by name.
    claims: BTreeMap<String, Value>,
    /// The cached revisions of the set's namespace; their data is text.
    revisions: Vec<Value>,
    api: Tracker,
    events: Vec<String>,
}

/// Whether a walk over pods goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Continue,
    Exit,
}

impl Sync {
    /// The whole sync; the delayed add that it asks for.
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
        // Trying again would not mend the selector.
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
        self.events.push(match result {
            Ok(()) => format!("Normal Successful{reason} {message}"),
            Err(error) => format!("Warning Failed{reason} {message} error: {error}"),
        });
    }

    /// What a deletion says of the object that it means.
    fn means(&self, object: &Value, members: &[&str]) -> Value {
        if !self.rules.deletions_name_objects {
            return Value::Null;
        }
        let text = |name: &str| object["metadata"][name].as_str().unwrap_or("");
        let member = |name: &&str| ((*name).to_owned(), Value::from(text(name)));
        Value::Object(members.iter().map(member).collect())
    }

    /// Whether pods are worked on in batches.
    fn is_burst(&self) -> bool {
        self.set.is_burst
    }

    /// Does something for each of `count` pods: one after the other until one of them says stop,
    /// or in batches of 1, 2, 4… of which the first with a failure is the last.
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
            // Of the calls that a batch starts at once, the reference makes the last one first.
            let last = done + size - 1;
            let order = std::iter::once(last).chain(done..last);
            let failures: Vec<Failure> =
                order.filter_map(|index| work(self, index).err()).collect();
            Failure::join(failures)?;
            done += size;
            size = (2 * size).min(count - done).min(500);
        }
        Ok(Step::Continue)
    }
}
