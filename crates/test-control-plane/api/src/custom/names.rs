//! Acceptance of a definition's names within its group.
//!
//! Upstream: `NamingConditionController`.

use std::collections::BTreeSet;

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

/// Names in use by other definitions of the group.
struct InUse {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

/// Decides which names of the definition are free among `all` definitions.
///
/// Upstream: `calculateNamesAndConditions`
pub(super) fn accept(definition: Definition<'_>, all: &[Value]) -> Accepted {
    let used = in_use(definition, all);
    let null = Value::Null;
    let member = |pointer: &str| definition.0.pointer(pointer).unwrap_or(&null);
    let (wanted, before) = (member("/spec/names"), member("/status/acceptedNames"));
    let mut names = before.as_object().cloned().unwrap_or_default();
    let mut one = |name: &'static str, reason: &'static str, used: &BTreeSet<String>| {
        let asked = text(wanted, name);
        let refused = refuse(asked, text(before, name), used);
        if refused.is_none() {
            set(&mut names, name, json!(asked));
        }
        refused.map(|message| (reason, message))
    };
    let mut found = one("plural", "PluralConflict", &used.resources);
    found = one("singular", "SingularConflict", &used.resources).or(found);
    let known = texts(before, "shortNames");
    let refused: Vec<String> = texts(wanted, "shortNames")
        .iter()
        .filter(|name| !known.contains(name) && used.resources.contains(*name))
        .map(|name| in_use_message(name))
        .collect();
    let kind = one("kind", "KindConflict", &used.kinds);
    let list_kind = one("listKind", "ListKindConflict", &used.kinds);
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

fn in_use(definition: Definition<'_>, all: &[Value]) -> InUse {
    let mut used = InUse {
        resources: BTreeSet::new(),
        kinds: BTreeSet::new(),
    };
    let others = all
        .iter()
        .map(Definition)
        .filter(|other| other.group() == definition.group() && other.name() != definition.name());
    for other in others {
        let Some(names) = other.0.pointer("/status/acceptedNames") else {
            continue;
        };
        let filled = |name: &str| Some(text(names, name).to_owned()).filter(|n| !n.is_empty());
        used.resources.extend(filled("plural"));
        used.resources.extend(filled("singular"));
        used.resources.extend(texts(names, "shortNames"));
        used.kinds.extend(filled("kind"));
        used.kinds.extend(filled("listKind"));
    }
    used
}

/// Returns the message for a name in use.
///
/// Upstream: `equalToAcceptedOrFresh`
fn refuse(asked: &str, accepted: &str, used: &BTreeSet<String>) -> Option<String> {
    (asked != accepted && used.contains(asked)).then(|| in_use_message(asked))
}

fn in_use_message(name: &str) -> String {
    format!("{name:?} is already in use")
}

/// Sets a member as Go writes it: optional ones only if they aren't empty.
fn set(names: &mut Map<String, Value>, name: &str, value: Value) {
    let is_empty = value == "" || value.as_array().is_some_and(Vec::is_empty);
    if is_empty && !matches!(name, "plural" | "kind") {
        names.remove(name);
    } else {
        names.insert(name.to_owned(), value);
    }
}
