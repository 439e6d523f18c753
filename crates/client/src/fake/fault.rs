//! Rules that make calls fail.

use serde::Deserialize;

use super::{Action, Verb};
use crate::error::Error;

/// Fails a number of matching calls. A failed call changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CallFault {
    /// The verb.
    pub verb: Verb,
    /// The plural name of the resource.
    pub resource: String,
    /// The subresource; empty for the object itself.
    #[serde(default)]
    pub subresource: String,
    /// Number of calls that will still fail.
    pub times: u32,
    /// The failure.
    pub error: CallError,
}

/// A kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum CallError {
    /// 500.
    InternalError,
    /// 409 because of another version.
    Conflict,
    /// 403 because of a quota.
    Forbidden,
    /// 422.
    Invalid,
    /// 500 with reason `ServerTimeout`.
    Timeout,
    /// 409 because the name is taken.
    AlreadyExists,
    /// 404.
    NotFound,
}

impl CallFault {
    /// Creates a rule for the object itself.
    pub fn new(verb: Verb, resource: &str, times: u32, error: CallError) -> Self {
        let (resource, subresource) = (resource.to_owned(), String::new());
        Self {
            verb,
            resource,
            subresource,
            times,
            error,
        }
    }

    /// Restricts the rule to a subresource.
    #[must_use]
    pub fn on(mut self, subresource: &str) -> Self {
        subresource.clone_into(&mut self.subresource);
        self
    }

    /// Returns true if the rule matches this call and has failures left. Live reads that
    /// upstream does not make never fail: before a write, upstream reads only sets and
    /// revisions live.
    pub(super) fn applies_to(&self, action: &Action) -> bool {
        let reference_reads = ["statefulsets", "controllerrevisions"];
        self.times > 0
            && self.verb == action.verb
            && self.resource == action.resource
            && self.subresource == action.subresource
            && (self.verb != Verb::Get || reference_reads.contains(&action.resource.as_str()))
    }
}

impl CallError {
    /// Returns the error with its text, which appears in events. The resource omits its group.
    pub fn to_error(self, action: &Action) -> Error {
        let (resource, name) = (&action.resource, &action.name);
        match self {
            Self::InternalError => {
                Error::api(500, "InternalError", "Internal error occurred: boom")
            }
            Self::Conflict => {
                let text = format!(
                    "Operation cannot be fulfilled on {resource} \"{name}\": \
                     object has been modified"
                );
                Error::api(409, "Conflict", text)
            }
            Self::Forbidden => {
                let text = format!("{resource} \"{name}\" is forbidden: exceeded quota");
                Error::api(403, "Forbidden", text)
            }
            Self::Invalid => Error::api(422, "Invalid", format!("X \"{name}\" is invalid")),
            Self::Timeout => {
                let text = format!(
                    "The op operation against {resource} could not be completed at this time, \
                     please try again."
                );
                Error::api(500, "ServerTimeout", text)
            }
            Self::AlreadyExists => already_exists(resource, name),
            Self::NotFound => not_found(resource, name),
        }
    }
}

pub(super) fn already_exists(resource: &str, name: &str) -> Error {
    Error::api(
        409,
        "AlreadyExists",
        format!("{resource} \"{name}\" already exists"),
    )
}

pub(super) fn not_found(resource: &str, name: &str) -> Error {
    Error::api(404, "NotFound", format!("{resource} \"{name}\" not found"))
}
