//! The write to validate, and its findings.

use crate::kinds::{Kind, Target};
use crate::object::Draft;
use crate::settings::{EmulatedVersion, ServerGates};
use crate::status::FieldError;

/// The write to validate.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The stored kind of the object.
    pub kind: &'a Kind,
    /// The kind in the request's URL, which may be another version of the stored kind.
    pub served: &'a Kind,
    /// The object after the write.
    pub new: &'a Draft,
    /// The stored object; `None` on create.
    pub old: Option<&'a Draft>,
    /// The target: the object or a subresource.
    pub target: Target,
    /// The server's feature gates.
    pub gates: ServerGates,
    /// The version whose fields errors show.
    pub version: EmulatedVersion,
}

/// Errors and warnings of a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Errors, which reject the write.
    pub errors: Vec<FieldError>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

impl From<Vec<FieldError>> for Findings {
    fn from(errors: Vec<FieldError>) -> Self {
        Self {
            errors,
            warnings: Vec::new(),
        }
    }
}
