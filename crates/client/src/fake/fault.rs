//! Calls that fail by a rule.

use serde::Deserialize;

use super::{Action, Verb};
use crate::error::Error;

/// Fails calls of one kind, a number of times. The failed call changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FaultRule {
    /// The verb.
    pub verb: Verb,
    /// The plural name of the resource.
    pub resource: String,
    /// The subresource; empty for the object itself.
    #[serde(default)]
    pub subresource: String,
    /// How many more calls fail.
    pub times: u32,
    /// How they fail.
    pub error: FaultError,
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum FaultError {
    /// 500.
    InternalError,
    /// 409, another version.
    Conflict,
    /// 403, a quota.
    Forbidden,
    /// 422.
    Invalid,
    /// 500 with reason `ServerTimeout`.
    Timeout,
    /// 409, the name is taken.
    AlreadyExists,
    /// 404.
    NotFound,
}

impl FaultRule {
    /// A rule for the object itself that strikes this often.
    pub fn new(verb: Verb, resource: &str, times: u32, error: FaultError) -> Self {
        let (resource, subresource) = (resource.to_owned(), String::new());
        Self {
            verb,
            resource,
            subresource,
            times,
            error,
        }
    }

    /// The same rule for a subresource.
    #[must_use]
    pub fn on(mut self, subresource: &str) -> Self {
        subresource.clone_into(&mut self.subresource);
        self
    }

    /// True if the rule has times left and is for this call. Live reads that the reference does not
    /// make never fail: of those on the way to a write, it makes only the ones of sets and of
    /// revisions.
    pub(super) fn strikes(&self, action: &Action) -> bool {
        let reference_reads = ["statefulsets", "controllerrevisions"];
        self.times > 0
            && self.verb == action.verb
            && self.resource == action.resource
            && self.subresource == action.subresource
            && (self.verb != Verb::Get || reference_reads.contains(&action.resource.as_str()))
    }
}

impl FaultError {
    /// The error with its text, which stands in events. The resource comes without its group.
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
