//! A second, sequential implementation of the specification: one sync of a stateful set on a frozen
//! cluster.
//!
//! The model is an oracle. It shares no decision with the product: it works on plain JSON, reads
//! caches that never change, and writes to an object tracker instead of a server. With every rule
//! of [`Rules`] off it is upstream, and must reproduce each recorded expectation in full; each
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
mod rules;
mod set;
mod status;
mod sync;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::Context;
use jiff::SignedDuration;
use kube_apimachinery::selector::{LabelSelector, Selector};
use serde_json::Value;
use statefulset_client::fake::Verb;

use self::claiming::{adopt_revisions, claim_pods};
use self::cluster::{Asked, Kind, Tracker, load};
use self::failure::Failure;
use self::phases::update;
use self::revisions::list_revisions;
pub use self::rules::Rules;
use self::set::Set;
use self::status::requeue_after;
use self::sync::Sync;
use crate::outcome::{ClaimVolumes, Outcome, comparable};
use crate::requests;
use crate::sync_case::Case;

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
    let result = sync_set(&mut sync);
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

/// Runs the whole sync; returns the requested delayed requeue.
fn sync_set(sync: &mut Sync) -> Result<Option<SignedDuration>, Failure> {
    let selector = sync
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
    adopt_revisions(sync, &selector)?;
    let pods = claim_pods(sync, &selector)?;
    let revisions = list_revisions(sync, &selector);
    let status = update(sync, &pods, &revisions)?;
    Ok(requeue_after(sync, &pods, &status))
}
