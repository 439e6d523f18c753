//! Helpers of the tests of rules.

mod upstream;

use serde_json::Value;

use super::engine::{Context, Errors, Hook, Place};
use super::tables;
use crate::settings::ServerGates;

fn found(hook: Hook, value: &Value) -> Errors {
    let context = tables::context(ServerGates::default());
    let mut errors = Errors::new();
    hook(&Place::root(&context, value, None, "x"), &mut errors);
    errors
}

/// Returns the details of the errors of a function.
pub(super) fn details(hook: Hook, value: &Value) -> Vec<String> {
    let detail = |message: String| match message.rsplit_once(": ") {
        Some((_, detail)) => detail.to_owned(),
        None => message,
    };
    let errors = found(hook, value).into_iter();
    errors.map(|error| detail(error.message)).collect()
}

/// Returns the paths of the errors of a function about a value at `x`.
pub(super) fn fields(hook: Hook, value: &Value) -> Vec<String> {
    let errors = found(hook, value).into_iter();
    errors.map(|error| error.field).collect()
}

/// Returns the paths of the errors about a changed field of an object.
pub(super) fn updated(hook: Hook, old: &Value, new: &Value, member: &str) -> Vec<String> {
    let context = Context {
        old: Some(old),
        ..tables::context(ServerGates::default())
    };
    let root = Place::root(&context, new, Some(old), "");
    let mut errors = Errors::new();
    hook(&root.member(member), &mut errors);
    errors.into_iter().map(|error| error.field).collect()
}
