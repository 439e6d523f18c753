//! Acceptance of a definition's names within its group.
//!
//! Upstream: `NamingConditionController`.

use serde_json::{Map, Value, json};

use super::definition::Definition;
use super::schema::texts;
use crate::members::text;

/// The outcome of a check of names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Accepted {
    /// The accepted names.
    pub(super) names: Value,
    /// Reason and message of the last conflict.
    pub(super) conflict: Option<(&'static str, String)>,
}

/// A test for a name among accepted names.
type IsName = fn(&Value, &str) -> bool;

/// Decides which names of the definition are free among `all` definitions.
///
/// Upstream: `calculateNamesAndConditions` and `equalToAcceptedOrFresh`
pub(super) fn accept(definition: Definition<'_>, all: &[&Value]) -> Accepted {
    let is_used = |asked: &str, is_name: IsName| {
        !asked.is_empty() && names_in_group(definition, all).any(|names| is_name(names, asked))
    };
    let null = Value::Null;
    let member = |pointer: &str| definition.0.pointer(pointer).unwrap_or(&null);
    let (wanted, before) = (member("/spec/names"), member("/status/acceptedNames"));
    let mut names = before.as_object().cloned().unwrap_or_default();
    let mut one = |name: &'static str, reason: &'static str, is_name: IsName| {
        let asked = text(wanted, name);
        if asked != text(before, name) && is_used(asked, is_name) {
            return Some((reason, in_use_message(asked)));
        }
        set(&mut names, name, json!(asked));
        None
    };
    let mut found = one("plural", "PluralConflict", is_resource);
    found = one("singular", "SingularConflict", is_resource).or(found);
    let known = texts(before, "shortNames");
    let refused: Vec<String> = texts(wanted, "shortNames")
        .iter()
        .filter(|name| !known.contains(name) && is_used(name, is_resource))
        .map(|name| in_use_message(name))
        .collect();
    let kind = one("kind", "KindConflict", is_kind);
    let list_kind = one("listKind", "ListKindConflict", is_kind);
    if refused.is_empty() {
        set(&mut names, "shortNames", json!(texts(wanted, "shortNames")));
    } else {
        let message = match refused.as_slice() {
            [one] => one.clone(),
            more => format!("[{}]", more.join(", ")),
        };
        found = Some(("ShortNamesConflict", message));
    }
    set(&mut names, "categories", json!(texts(wanted, "categories")));
    Accepted {
        names: Value::Object(names),
        conflict: list_kind.or(kind).or(found),
    }
}

/// Returns the accepted names of all definitions in the group, this one included: as in upstream, one
/// of its names can't become another one of it.
///
/// Upstream: `getAcceptedNamesForGroup`
fn names_in_group<'a>(
    definition: Definition<'a>,
    all: &[&'a Value],
) -> impl Iterator<Item = &'a Value> {
    all.iter()
        .map(|other| Definition(other))
        .filter(move |other| other.group() == definition.group())
        .filter_map(|other| other.0.pointer("/status/acceptedNames"))
}

/// Returns true if the names contain this one of a resource.
fn is_resource(names: &Value, asked: &str) -> bool {
    let short = names.get("shortNames").and_then(Value::as_array);
    text(names, "plural") == asked
        || text(names, "singular") == asked
        || short.into_iter().flatten().any(|name| name == asked)
}

/// Returns true if the names contain this one of a kind.
fn is_kind(names: &Value, asked: &str) -> bool {
    text(names, "kind") == asked || text(names, "listKind") == asked
}

fn in_use_message(name: &str) -> String {
    format!("{name:?} is already in use")
}

/// Sets a field as Go writes it: optional ones only if they aren't empty.
fn set(names: &mut Map<String, Value>, name: &str, value: Value) {
    let is_empty = value == "" || value.as_array().is_some_and(Vec::is_empty);
    if is_empty && !matches!(name, "plural" | "kind") {
        names.remove(name);
    } else {
        names.insert(name.to_owned(), value);
    }
}
