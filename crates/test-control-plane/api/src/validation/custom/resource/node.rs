//! A value under validation, and the findings about its object.

use serde_json::Value;

use crate::status::FieldError;

/// A value under validation.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    /// The corresponding value before the update.
    pub(super) old: Option<&'a Value>,
    pub(super) path: &'a str,
}

/// The validation of an object.
#[derive(Default)]
pub(super) struct Validation {
    /// Errors at paths within the object.
    pub(super) errors: Vec<FieldError>,
    /// The number of checks that matched, by which the closest alternative is found.
    pub(super) matched: usize,
    /// Whether the value is a default, for which unknown formats count.
    pub(super) is_default: bool,
}

impl Validation {
    /// Adds an error, unless it is there already.
    pub(super) fn push(&mut self, error: FieldError) {
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    /// Returns the errors at paths below that of the object.
    ///
    /// Upstream: `kubeOpenAPIResultToFieldErrors`
    pub(super) fn into_errors(self, at: &str) -> impl Iterator<Item = FieldError> {
        self.errors.into_iter().map(move |mut error| {
            let path = error.field.trim_start_matches('.');
            error.field = match (at, path) {
                ("", "") => "<nil>".to_owned(),
                ("", path) => path.to_owned(),
                (at, "") => at.to_owned(),
                (at, path) => format!("{at}.{path}"),
            };
            error
        })
    }
}

/// Returns the path of a field.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Returns true if a minimum exceeds a count.
pub(super) fn exceeds(min: i64, count: usize) -> bool {
    i64::try_from(count).is_ok_and(|count| min > count)
}

/// Returns true if a maximum is below a count.
pub(super) fn is_below(max: i64, count: usize) -> bool {
    i64::try_from(count).is_ok_and(|count| max < count)
}
