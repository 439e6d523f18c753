//! Requests of a sync, in comparable form.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use statefulset_client::fake::{Action, FakeClientset, Verb};
use statefulset_client::resource::{
    CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, Resource, STATEFUL_SETS,
};

use crate::outcome::{ClaimVolumes, comparable};

/// Rule name: reads before a change of a pod, a claim or a revision's number.
pub const READS_BEFORE_CHANGES: &str = "reads-before-changes";
/// Rule name: reads of a pod or a claim that show that no change is needed, or that a failure
/// follows before the change.
pub const READS_WITHOUT_CHANGES: &str = "reads-without-changes";
/// Rule name: reads of the live set before a claim gets an owner or a pod is deleted with its
/// claims.
pub const LIVE_READS_OF_THE_SET: &str = "live-reads-of-the-set";

/// A request with its verb, resource, name and body.
pub fn request(verb: &str, resource: &str, subresource: &str, name: &str, body: Value) -> Value {
    let place = if subresource.is_empty() {
        resource.to_owned()
    } else {
        format!("{resource}/{subresource}")
    };
    let request = Value::from(format!("{verb} {place} {name}"));
    Value::from_iter([("request", request), ("body", body)])
}

/// Sorts neighbouring requests whose order in upstream is that of a hash map: adoptions and
/// releases, and the creation of a pod's claims.
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

/// Sorts requests whose order is undefined.
pub fn sort(requests: &mut [Value]) {
    let key = |request: &Value| (request["request"].to_string(), request["body"].to_string());
    requests.sort_by_cached_key(key);
}

/// The body of a request, in comparable form: of a set only the status.
///
/// # Errors
///
/// The text is not a JSON object.
pub fn body(text: &str, claims: &ClaimVolumes) -> serde_json::Result<Value> {
    let (_, mut body) = comparable(text, claims)?;
    // The namespace is also in the path, and new revisions omit it.
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("namespace");
    }
    Ok(body)
}

/// Requests of two clients, in one sequence.
#[derive(Clone, Default)]
pub struct RequestLog(Arc<Mutex<Vec<(Source, Action)>>>);

/// Client of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The client of all other requests.
    Client,
    /// The reader of sets before adoptions.
    Adoption,
}

impl RequestLog {
    /// Records all further requests to an API.
    pub fn follow(&self, api: &FakeClientset, source: Source) {
        let log = Arc::clone(&self.0);
        api.react(None, "*", move |action| {
            log.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((source, action.clone()));
            None
        });
    }

    /// The requests so far without those that upstream doesn't make by design, and the names
    /// of the rules that removed any.
    ///
    /// # Errors
    ///
    /// A body is not JSON.
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

/// Rule by which upstream doesn't make this request; `None` if it must make it.
fn rule_against(
    source: Source,
    action: &Action,
    after: &[(Source, Action)],
) -> Option<&'static str> {
    if action.verb != Verb::Get || source == Source::Adoption {
        return None;
    }
    if action.resource == STATEFUL_SETS.plural {
        return Some(LIVE_READS_OF_THE_SET);
    }
    let is_one_of = |resources: &[Resource]| {
        let mut resources = resources.iter();
        resources.any(|resource| resource.plural == action.resource)
    };
    // Each read belongs to one later change of the same object.
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
