//! The requests of a sync, in the form in which they are compared.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use statefulset_client::fake::{Action, FakeClientset, Verb};
use statefulset_client::resource::{
    CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, Resource, STATEFUL_SETS,
};

use crate::outcome::{ClaimVolumes, comparable};

/// Reads before a change of a pod, a claim or a revision's number.
pub const READS_BEFORE_CHANGES: &str = "reads-before-changes";
/// Reads of a pod or a claim that show that nothing is to be changed, or that are followed by a
/// failure before the change.
pub const READS_WITHOUT_CHANGES: &str = "reads-without-changes";
/// Looks at the live set before a claim gets an owner or a pod is deleted with its claims.
pub const LOOKS_AT_THE_SET: &str = "looks-at-the-set";

/// A request with what it sends: verb, resource, name, body.
pub fn request(verb: &str, resource: &str, subresource: &str, name: &str, body: Value) -> Value {
    let place = if subresource.is_empty() {
        resource.to_owned()
    } else {
        format!("{resource}/{subresource}")
    };
    let request = Value::from(format!("{verb} {place} {name}"));
    Value::from_iter([("request", request), ("body", body)])
}

/// Puts neighbouring requests into an order where the reference makes them in the order of a hash
/// map: adoptions and releases, and the creation of a pod's claims.
pub fn sort_neighbours(requests: &mut [Value]) {
    let kind = |request: &Value| {
        let text = request["request"].as_str().unwrap_or("");
        let free = [
            "patch pods ",
            "patch controllerrevisions ",
            "create persistentvolumeclaims ",
        ];
        free.into_iter().position(|start| text.starts_with(start))
    };
    for neighbours in requests.chunk_by_mut(|a, b| kind(a).is_some() && kind(a) == kind(b)) {
        sort(neighbours);
    }
}

/// Puts requests whose order doesn't count into an order.
pub fn sort(requests: &mut [Value]) {
    let key = |request: &Value| (request["request"].to_string(), request["body"].to_string());
    requests.sort_by_cached_key(key);
}

/// An object as a request sends it, in the form in which it is compared: of a set the status alone.
///
/// # Errors
///
/// The text is no JSON object.
pub fn body(text: &str, claims: &ClaimVolumes) -> serde_json::Result<Value> {
    let (_, mut body) = comparable(text, claims)?;
    // The path says it too, and a new revision leaves it out.
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("namespace");
    }
    Ok(body)
}

/// What two clients ask, in one order.
#[derive(Clone, Default)]
pub struct RequestLog(Arc<Mutex<Vec<(Source, Action)>>>);

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The client of all but the next.
    Client,
    /// The reader of sets before adoptions.
    Adoption,
}

impl RequestLog {
    /// Notes what is asked of an API from now on.
    pub fn follow(&self, api: &FakeClientset, source: Source) {
        let log = Arc::clone(&self.0);
        api.react(None, "*", move |action| {
            log.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((source, action.clone()));
            None
        });
    }

    /// The requests so far without those that the reference doesn't make by design, and the names
    /// of the rules that took any of these away.
    ///
    /// # Errors
    ///
    /// A body is no JSON.
    pub fn requests(
        &self,
        claims: &ClaimVolumes,
    ) -> serde_json::Result<(Vec<Value>, Vec<&'static str>)> {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut requests = Vec::new();
        let mut rules = Vec::new();
        for (at, (source, action)) in log.iter().enumerate() {
            match rule_against(*source, action, &log[at + 1..]) {
                Some(rule) if rules.contains(&rule) => {}
                Some(rule) => rules.push(rule),
                None => requests.push(canonical(action, claims)?),
            }
        }
        Ok((requests, rules))
    }
}

/// The rule by which the reference doesn't make this request; none if it has to make it.
fn rule_against(
    source: Source,
    action: &Action,
    after: &[(Source, Action)],
) -> Option<&'static str> {
    if action.verb != Verb::Get || source == Source::Adoption {
        return None;
    }
    if action.resource == STATEFUL_SETS.plural {
        return Some(LOOKS_AT_THE_SET);
    }
    let is_one_of = |resources: &[Resource]| {
        let mut resources = resources.iter();
        resources.any(|resource| resource.plural == action.resource)
    };
    // Each read belongs to one later change of what was read.
    let of_same = |verb: Verb, log: &[(Source, Action)]| {
        let same = |(_, other): &&(Source, Action)| {
            other.verb == verb && other.resource == action.resource && other.name == action.name
        };
        log.iter().filter(same).count()
    };
    if is_one_of(&[PODS, PERSISTENT_VOLUME_CLAIMS, CONTROLLER_REVISIONS])
        && of_same(Verb::Update, after) > of_same(Verb::Get, after)
    {
        return Some(READS_BEFORE_CHANGES);
    }
    is_one_of(&[PODS, PERSISTENT_VOLUME_CLAIMS]).then_some(READS_WITHOUT_CHANGES)
}

fn canonical(action: &Action, claims: &ClaimVolumes) -> serde_json::Result<Value> {
    let body = match action.verb {
        Verb::Create | Verb::Update => body(&action.body, claims)?,
        Verb::Patch => serde_json::from_str(&action.body)?,
        Verb::Delete => {
            let options: Value = serde_json::from_str(&action.body)?;
            options["preconditions"].clone()
        }
        Verb::Get | Verb::List | Verb::Watch => Value::Null,
    };
    Ok(request(
        &action.verb.to_string(),
        &action.resource,
        &action.subresource,
        &action.name,
        body,
    ))
}
