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
    pub(super) errors: Vec<FieldError>,
    /// The part of paths that texts leave out.
    pub(super) hidden: &'static str,
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

    /// Returns one of the same kind without errors.
    pub(super) fn empty(&self) -> Self {
        Self {
            hidden: self.hidden,
            is_default: self.is_default,
            ..Self::default()
        }
    }

    /// Returns the path in texts.
    pub(super) fn shown<'p>(&self, path: &'p str) -> &'p str {
        path.strip_prefix(self.hidden).unwrap_or(path)
    }
}

/// Returns the path of a member.
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
