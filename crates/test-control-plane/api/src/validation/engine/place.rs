//! A field of the object under validation, and the errors about it.

use kube_apimachinery::quantity::Quantity;
use kube_apimachinery::schema::{Field, Shape, Type};
use serde_json::{Value, json};

use super::print::{self, Typed};
use crate::members;
use crate::settings::ServerGates;
use crate::status::FieldError;

const NULL: Value = Value::Null;

/// The errors so far.
pub(in crate::validation) type Errors = Vec<FieldError>;

/// Blocks of rules by name.
pub(in crate::validation) trait Blocks: std::fmt::Debug + Sync {
    /// Applies the block of this name, if there is one.
    fn check(&self, block: &str, place: &Place<'_>, errors: &mut Errors);

    /// Returns true if there is a block of this name.
    fn has(&self, block: &str) -> bool;

    /// Returns true if a value breaks the rules of a block.
    fn breaks(&self, block: &str, place: &Place<'_>) -> bool;
}

/// The surroundings of a value, the same for all values of an object or of a pod in it.
#[derive(Clone, Copy, Debug)]
pub(in crate::validation) struct Context<'a> {
    /// The server's feature gates.
    pub gates: ServerGates,
    /// The rules.
    pub rules: &'a dyn Blocks,
    /// The stored object; `None` on create.
    pub old: Option<&'a Value>,
    /// The type of the whole object.
    pub of: Option<&'static Type>,
    /// The pod or pod template around the value.
    pub pod: Option<Pod<'a>>,
}

/// A pod or a pod template around a value.
#[derive(Clone, Copy, Debug)]
pub(in crate::validation) struct Pod<'a> {
    /// Its spec.
    pub spec: &'a Value,
    /// The stored spec.
    pub old: Option<&'a Value>,
    /// Its metadata.
    pub metadata: &'a Value,
    /// True for a pod, false for a template.
    pub is_whole: bool,
    /// Names of volumes that replace those of the spec, in order.
    pub claims: &'a [&'a str],
    /// True if the controller sets the names of the pods in the network.
    pub is_named: bool,
}

/// A value in the object under validation.
#[derive(Clone, Copy, Debug)]
pub(in crate::validation) struct Place<'a> {
    /// The value; null if it is absent.
    pub value: &'a Value,
    /// The stored value; `None` on create and inside lists.
    pub old: Option<&'a Value>,
    /// The surroundings.
    pub context: &'a Context<'a>,
    holder: Option<&'a Place<'a>>,
    step: Step<'a>,
}

/// The last step of a value's path.
#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    /// A field, or a path of fields, with its name in errors; the whole path for a value without
    /// a holder.
    Member(&'a str, Shown<'a>),
    /// An element of a list.
    Element(usize),
    /// An element of a list, or a value of a map, that errors call like the list or map.
    Unnamed,
    /// A value of a map.
    Key(&'a str),
    /// The value itself, or another one that errors call like it.
    Same,
}

/// The name of a value in errors: levels above its holder, and a path from there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::validation) struct Shown<'a> {
    /// Levels above the holder.
    pub up: usize,
    /// Path of fields; empty for the object itself.
    pub name: &'a str,
}

impl<'a> Shown<'a> {
    /// Reads a name such as `a.b`, `.` for the holder itself, or `^a` for a name in the holder's
    /// holder.
    pub(in crate::validation) fn read(text: &'a str) -> Self {
        let name = text.trim_start_matches('^');
        Self {
            up: text.len() - name.len(),
            name: if name == "." { "" } else { name },
        }
    }
}

/// Compares two values, in which empty lists equal none.
///
/// Upstream: `equality.Semantic.DeepEqual`.
fn are_equal(one: &Value, other: &Value) -> bool {
    let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty) || value.is_null();
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let in_both = |(key, value)| are_equal(value, other.get(key).unwrap_or(&NULL));
            let added = other.iter().filter(|(key, _)| !one.contains_key(*key));
            one.iter().all(in_both) && added.map(|(_, value)| value).all(is_empty)
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => one
            .iter()
            .zip(other)
            .all(|(one, other)| are_equal(one, other)),
        _ => one == other || is_empty(one) && is_empty(other),
    }
}

impl<'a> Place<'a> {
    /// Returns the place of a whole object, or of a part at a path.
    pub(in crate::validation) fn root(
        context: &'a Context<'a>,
        value: &'a Value,
        old: Option<&'a Value>,
        path: &'a str,
    ) -> Self {
        Self {
            value,
            old,
            context,
            holder: None,
            step: Step::Member("", Shown::read(path)),
        }
    }

    /// Returns the field at a dotted path. Leading carets go up in the object.
    pub(in crate::validation) fn member(&'a self, path: &'a str) -> Self {
        if let Some(path) = path.strip_prefix('^') {
            return self.up().unwrap_or(self).member(path);
        }
        let shown = Shown { up: 0, name: path };
        self.member_shown(path, shown)
    }

    /// Returns the field at a dotted path, with its name in errors, see [`Shown::read`].
    pub(in crate::validation) fn member_as(&'a self, path: &'a str, shown: &'a str) -> Self {
        self.member_shown(path, Shown::read(shown))
    }

    /// Returns the field at a path, whose leading carets go up in the object, with its name in
    /// errors.
    pub(super) fn member_shown(&'a self, path: &'a str, shown: Shown<'a>) -> Self {
        if let Some(path) = path.strip_prefix('^') {
            let found = self.up().unwrap_or(self).member(path);
            return Self {
                value: found.value,
                old: found.old,
                step: Step::Member("", shown),
                ..self.below()
            };
        }
        let of = |value: &'a Value| {
            let steps = path.split('.').filter(|step| !step.is_empty());
            let mut at = value;
            for step in steps {
                at = at.get(step).unwrap_or(&NULL);
            }
            at
        };
        Self {
            value: of(self.value),
            old: self.old.map(of),
            step: Step::Member(path, shown),
            ..self.below()
        }
    }

    fn below(&'a self) -> Self {
        Self {
            holder: Some(self),
            ..*self
        }
    }

    /// Returns the elements of a list.
    pub(in crate::validation) fn elements(&'a self) -> impl Iterator<Item = Self> {
        let values = self.value.as_array().into_iter().flatten();
        values.enumerate().map(|(i, value)| self.element(i, value))
    }

    /// Returns an element of a list, which may be another list than that in the object.
    pub(in crate::validation) fn element(&'a self, index: usize, value: &'a Value) -> Self {
        Self {
            value,
            old: None,
            step: Step::Element(index),
            ..self.below()
        }
    }

    /// Returns the elements of a list or the values of a map, which errors call like the list.
    pub(in crate::validation) fn values(&'a self) -> impl Iterator<Item = Self> {
        let list = self.value.as_array().into_iter().flatten();
        let map = self.value.as_object().into_iter().flatten();
        list.chain(map.map(|(_, value)| value)).map(|value| Self {
            value,
            old: None,
            step: Step::Unnamed,
            ..self.below()
        })
    }

    /// Returns the keys and values of a map.
    pub(in crate::validation) fn entries(&'a self) -> impl Iterator<Item = (&'a str, Self)> {
        let map = self.value.as_object().into_iter().flatten();
        map.map(|(key, value)| {
            let old = self.old.map(|old| old.get(key).unwrap_or(&NULL));
            let step = Step::Key(key);
            let place = Self {
                value,
                old,
                step,
                ..self.below()
            };
            (key.as_str(), place)
        })
    }

    /// Returns the place of another value, which errors call like this one.
    pub(in crate::validation) fn instead(&'a self, value: &'a Value) -> Self {
        Self {
            value,
            old: None,
            step: Step::Same,
            ..self.below()
        }
    }

    /// Returns the same place in other surroundings.
    pub(in crate::validation) fn within(&'a self, context: &'a Context<'a>) -> Place<'a> {
        Place {
            value: self.value,
            old: self.old,
            context,
            holder: Some(self),
            step: Step::Same,
        }
    }

    /// Returns the place with another stored value, for an element of a list.
    pub(in crate::validation) fn with_old(self, old: &'a Value) -> Self {
        let old = Some(old);
        Self { old, ..self }
    }

    /// Returns the place that contains this one.
    pub(in crate::validation) fn up(&self) -> Option<&'a Place<'a>> {
        match self.step {
            Step::Same => self.holder?.up(),
            _ => self.holder,
        }
    }

    /// Returns the index of an element of a list.
    pub(in crate::validation) fn index(&self) -> Option<usize> {
        match self.step {
            Step::Element(index) => Some(index),
            Step::Same => self.holder?.index(),
            _ => None,
        }
    }

    /// Returns the elements before this one in its list.
    pub(in crate::validation) fn before(&self) -> &'a [Value] {
        let list = self.up().and_then(|list| list.value.as_array());
        let list = list.map(Vec::as_slice).unwrap_or_default();
        let end = self.index().unwrap_or_default();
        list.get(..end).unwrap_or_default()
    }

    /// Returns the path in messages.
    pub(in crate::validation) fn path(&self) -> String {
        let holder = self.holder.map(Place::path).unwrap_or_default();
        match self.step {
            Step::Member(_, shown) => {
                let mut at = self.holder;
                for _ in 0..shown.up {
                    at = at.and_then(Place::up);
                }
                let path = match shown.up {
                    0 => holder,
                    _ => at.map(Place::path).unwrap_or_default(),
                };
                match (path.is_empty(), shown.name.is_empty()) {
                    (_, true) => path,
                    (true, false) => shown.name.to_owned(),
                    (false, false) => format!("{path}.{}", shown.name),
                }
            }
            Step::Element(i) => format!("{holder}[{i}]"),
            Step::Key(key) => format!("{holder}[{key}]"),
            Step::Unnamed | Step::Same => holder,
        }
    }

    /// Returns the type of the value, if the schema knows it.
    fn typed(&self) -> Option<Typed> {
        let Some(holder) = self.holder else {
            return self.context.of.map(Typed::Object);
        };
        let inner = |field: &'static Field| match (field.shape, field.object_type()) {
            (Shape::Plain | Shape::Pointer, Some(of)) => Typed::Object(of),
            _ => Typed::Member(field),
        };
        match self.step {
            Step::Member(path, _) => {
                let (mut at, mut last) = (holder.typed()?, None);
                for step in path.split('.').filter(|step| !step.is_empty()) {
                    let Typed::Object(of) = at else { return None };
                    let field = of.field(step)?;
                    (at, last) = (inner(field), Some(field));
                }
                // A pointer to nothing prints as null.
                let is_pointer = last.filter(|field| field.shape == Shape::Pointer);
                is_pointer
                    .filter(|_| self.value.is_null())
                    .map(Typed::Member)
                    .or(Some(at))
            }
            Step::Element(_) | Step::Unnamed | Step::Key(_) => match holder.typed()? {
                Typed::Member(field) => Some(match field.object_type() {
                    Some(of) => Typed::Object(of),
                    None => Typed::Element(field),
                }),
                _ => None,
            },
            Step::Same => holder.typed(),
        }
    }

    /// Returns the type of the value, if it is an object of the schema.
    pub(super) fn object_type(&self) -> Option<&'static Type> {
        match self.typed()? {
            Typed::Object(of) => Some(of),
            _ => None,
        }
    }

    /// Applies a block of rules.
    pub(in crate::validation) fn check(&self, block: &str, errors: &mut Errors) {
        self.context.rules.check(block, self, errors);
    }

    /// Returns the spec of the pod or template around the value; null without one.
    pub(in crate::validation) fn pod_spec(&self) -> &'a Value {
        self.context.pod.map_or(&NULL, |pod| pod.spec)
    }

    /// Returns the elements of the stored list.
    pub(in crate::validation) fn stored(&self) -> &'a [Value] {
        let list = self.old.and_then(Value::as_array);
        list.map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the texts in a list.
    pub(in crate::validation) fn texts(&self) -> Vec<&'a str> {
        let list = self.value.as_array().into_iter().flatten();
        list.map(|text| text.as_str().unwrap_or_default()).collect()
    }

    /// Returns the texts in the stored list.
    pub(in crate::validation) fn stored_texts(&self) -> Vec<&'a str> {
        let list = self.stored().iter();
        list.map(|text| text.as_str().unwrap_or_default()).collect()
    }

    /// Returns the number of bytes of a text, or of elements of a list or map.
    pub(in crate::validation) fn length(&self) -> i64 {
        let length = match self.value {
            Value::String(text) => text.len(),
            _ => self.values().count(),
        };
        i64::try_from(length).unwrap_or(i64::MAX)
    }

    /// Returns the quantity; `None` if the value isn't one.
    pub(in crate::validation) fn quantity(&self) -> Option<Quantity> {
        self.value.as_str()?.parse().ok()
    }

    /// Returns true unless the value is absent or null.
    pub(in crate::validation) fn is_present(&self) -> bool {
        !self.value.is_null()
    }

    /// Returns true if the value is absent or Go's zero value.
    pub(in crate::validation) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::Bool(value) => !value,
            Value::Number(number) => number.as_i64() == Some(0),
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
        }
    }

    /// Returns true if an update changes the value. An empty list doesn't differ from none.
    pub(in crate::validation) fn is_changed(&self) -> bool {
        self.old.is_some_and(|old| !are_equal(old, self.value))
    }

    /// Returns the text; empty if the value isn't one.
    pub(in crate::validation) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// Returns the integer; 0 if the value isn't one.
    pub(in crate::validation) fn number(&self) -> i64 {
        self.value.as_i64().unwrap_or_default()
    }

    /// Reports a text of more bytes.
    pub(in crate::validation) fn limited(&self, max: usize, errors: &mut Errors) {
        if self.text().len() > max {
            errors.push(self.too_long(max));
        }
    }

    /// Returns the text of a field.
    pub(in crate::validation) fn text_of(&self, member: &str) -> &'a str {
        members::text(self.value, member)
    }

    /// Returns true if a field has this value.
    pub(in crate::validation) fn has(&self, member: &str, value: &str) -> bool {
        self.member(member).text() == value
    }

    /// Formats the value as upstream's internal type prints it.
    pub(in crate::validation) fn printed(&self) -> String {
        match (self.value, self.typed()) {
            (Value::Array(_) | Value::Object(_) | Value::Null, Some(of)) => {
                print::compact(of, self.value)
            }
            (value, _) => print::plain(value),
        }
    }

    /// Formats the difference of two values of a type, as upstream's internal type prints them.
    pub(in crate::validation) fn difference(&self, of: &str, old: &Value, new: &Value) -> String {
        let version = self.context.of.map(|of| of.version);
        print::diff(version.unwrap_or_default(), of, old, new)
    }

    /// The value is invalid.
    pub(in crate::validation) fn invalid(&self, detail: &str) -> FieldError {
        FieldError::invalid_text(self.path(), &self.printed(), detail)
    }

    /// The text is invalid, for each of these reasons.
    pub(in crate::validation) fn invalid_for<S: AsRef<str>>(
        &self,
        reasons: impl IntoIterator<Item = S>,
        errors: &mut Errors,
    ) {
        for why in reasons {
            let shown = print::plain(&json!(self.text()));
            errors.push(FieldError::invalid_text(self.path(), &shown, why.as_ref()));
        }
    }

    /// The value is invalid, and errors show another one.
    pub(in crate::validation) fn invalid_as(&self, shown: &Value, detail: &str) -> FieldError {
        FieldError::invalid(self.path(), shown, detail)
    }

    /// The value has more bytes than it may have.
    pub(in crate::validation) fn too_long(&self, max: usize) -> FieldError {
        FieldError::too_long(self.path(), &format!("may not be more than {max} bytes"))
    }

    /// The value is missing.
    pub(in crate::validation) fn required(&self, detail: &str) -> FieldError {
        FieldError::required(self.path(), detail)
    }

    /// The value is forbidden.
    pub(in crate::validation) fn forbidden(&self, detail: &str) -> FieldError {
        FieldError::forbidden(self.path(), detail)
    }

    /// The value is repeated.
    pub(in crate::validation) fn duplicate(&self) -> FieldError {
        FieldError::duplicate_text(self.path(), &self.printed())
    }

    /// The text names nothing.
    pub(in crate::validation) fn not_found(&self) -> FieldError {
        FieldError::not_found(self.path(), &json!(self.text()))
    }

    /// The text isn't in the enumeration.
    pub(in crate::validation) fn not_supported(&self, supported: &[&str]) -> FieldError {
        let shown = match self.value {
            Value::Null => "\"\"".to_owned(),
            _ => self.printed(),
        };
        FieldError::not_supported_text(self.path(), &shown, supported)
    }
}
