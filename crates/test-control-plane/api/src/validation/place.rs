//! A member of the object under validation, and the errors about it.

use serde_json::{Value, json};

use crate::members;
use crate::settings::FeatureGates;
use crate::status::FieldError;

const NULL: Value = Value::Null;

/// The errors so far.
pub(super) type Errors = Vec<FieldError>;

/// A value in the object under validation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// The value; null if it is absent.
    pub value: &'a Value,
    /// The stored value; `None` on create and inside lists.
    pub old: Option<&'a Value>,
    /// The server's feature gates.
    pub gates: FeatureGates,
    holder: Option<&'a Place<'a>>,
    step: Step<'a>,
}

/// The last step of a value's path.
#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    /// A member, or a path of members; the whole path for a value without a holder.
    Member(&'a str),
    /// An element of a list.
    Element(usize),
    /// A value that errors call like its holder.
    Same,
}

impl<'a> Place<'a> {
    /// Returns the place of a value at a path.
    pub(super) fn new(value: &'a Value, path: &'a str) -> Self {
        Self {
            value,
            old: None,
            gates: FeatureGates::default(),
            holder: None,
            step: Step::Member(path),
        }
    }

    /// Returns the place of a whole object.
    pub(super) fn root(value: &'a Value, old: Option<&'a Value>, gates: FeatureGates) -> Self {
        Self {
            old,
            gates,
            ..Self::new(value, "")
        }
    }

    /// Returns the member at a dotted path.
    pub(super) fn member(&'a self, path: &'a str) -> Self {
        self.member_as(path, path)
    }

    /// Returns the member at a dotted path, which errors call `shown`.
    pub(super) fn member_as(&'a self, path: &str, shown: &'a str) -> Self {
        let of = |value: &'a Value| {
            let mut steps = path.split('.');
            steps
                .try_fold(value, |value, step| value.get(step))
                .unwrap_or(&NULL)
        };
        Self {
            value: of(self.value),
            old: self.old.map(of),
            gates: self.gates,
            holder: Some(self),
            step: Step::Member(shown),
        }
    }

    /// Returns the elements of a list.
    pub(super) fn elements(&'a self) -> impl Iterator<Item = Self> {
        let values = self.values().enumerate();
        values.map(|(i, element)| Self {
            step: Step::Element(i),
            ..element
        })
    }

    /// Returns the elements of a list, which errors call like the list.
    pub(super) fn values(&'a self) -> impl Iterator<Item = Self> {
        let values = self.value.as_array().into_iter().flatten();
        values.map(|value| self.instead(value))
    }

    /// Returns the place of another value, which errors call like this one.
    pub(super) fn instead(&'a self, value: &'a Value) -> Self {
        Self {
            value,
            old: None,
            gates: self.gates,
            holder: Some(self),
            step: Step::Same,
        }
    }

    /// Returns the path in messages.
    pub(super) fn path(&self) -> String {
        let mut path = self.holder.map(Place::path).unwrap_or_default();
        match self.step {
            Step::Member(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
            Step::Element(i) => path.extend(["[", &i.to_string(), "]"]),
            Step::Same => {}
        }
        path
    }

    /// Returns true unless the value is absent or null.
    pub(super) fn is_present(&self) -> bool {
        !self.value.is_null()
    }

    /// Returns true if the value is absent or Go's zero value.
    pub(super) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::Bool(value) => !value,
            Value::Number(number) => number.as_i64() == Some(0),
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
        }
    }

    /// Returns true if an update changes the value.
    pub(super) fn is_changed(&self) -> bool {
        self.old.is_some_and(|old| old != self.value)
    }

    /// Returns the text; empty if the value isn't one.
    pub(super) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// Returns the integer; 0 if the value isn't one.
    pub(super) fn number(&self) -> i64 {
        self.value.as_i64().unwrap_or_default()
    }

    /// Returns the text of a member.
    pub(super) fn text_of(&self, member: &str) -> &'a str {
        members::text(self.value, member)
    }

    /// The value is invalid.
    pub(super) fn invalid(&self, detail: &str) -> FieldError {
        FieldError::invalid(self.path(), self.value, detail)
    }

    /// The text is invalid, for each of these reasons.
    pub(super) fn invalid_for<S: AsRef<str>>(
        &self,
        reasons: impl IntoIterator<Item = S>,
        errors: &mut Errors,
    ) {
        let text = json!(self.text());
        for why in reasons {
            errors.push(FieldError::invalid(self.path(), &text, why.as_ref()));
        }
    }

    /// The value is missing.
    pub(super) fn required(&self, detail: &str) -> FieldError {
        FieldError::required(self.path(), detail)
    }

    /// The value is forbidden.
    pub(super) fn forbidden(&self, detail: &str) -> FieldError {
        FieldError::forbidden(self.path(), detail)
    }

    /// The value is repeated.
    pub(super) fn duplicate(&self) -> FieldError {
        FieldError::duplicate(self.path(), self.value)
    }

    /// The text isn't in the enumeration.
    pub(super) fn not_supported(&self, supported: &[&str]) -> FieldError {
        FieldError::not_supported(self.path(), &json!(self.text()), supported)
    }
}
