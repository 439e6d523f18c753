//! Rows of the table of kinds, made of a definition.

use serde_json::Value;

use super::{Field, Kind, NameRule, Subresource, Trait, Verb};
use crate::custom::{self, CustomResource, Definition, flag};
use crate::members::{list, list_at, text, text_at};

/// The verbs of custom resources, in discovery order.
const VERBS: &[Verb] = &[
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Create,
    Verb::Update,
    Verb::Watch,
];

/// The verbs that discovery shows while the definition is being deleted.
const VERBS_IN_DELETION: &[Verb] = &[
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Watch,
];

/// Returns a row for each served version of an established definition.
///
/// Rows live until the process ends, as those of built-in kinds do: requests, watches and stored
/// keys refer to them. A row contains its schema, so a caller makes rows only for a definition
/// that changed.
pub fn of_definition(definition: &Value) -> Vec<&'static Kind> {
    let read = Definition(definition);
    if !read.is_established() {
        return Vec::new();
    }
    let served = read.versions().filter(|version| flag(version, "served"));
    let mut rows: Vec<&'static Kind> = served.map(|version| row(read, version)).collect();
    rows.sort_by(|one, other| custom::by_priority(one.version, other.version));
    rows
}

fn row(definition: Definition<'_>, version: &Value) -> &'static Kind {
    let value = definition.0;
    let name = |member: &str| text_at(value, &format!("/status/acceptedNames/{member}"));
    let custom = CustomResource::read(definition, version);
    let has_status = version
        .pointer("/subresources/status")
        .is_some_and(Value::is_object);
    let mut subresources = Vec::new();
    if has_status {
        subresources.push(Subresource::Status);
    }
    if custom.scale.is_some() {
        subresources.push(Subresource::Scale);
    }
    let list = |member: &str| -> &'static [&'static str] {
        let names = list_at(value, &format!("/status/acceptedNames/{member}"));
        let names: Vec<&'static str> = names.filter_map(Value::as_str).map(keep).collect();
        names.leak()
    };
    let row = Kind {
        group: keep(definition.group()),
        version: keep(text(version, "name")),
        kind: keep(name("kind")),
        plural: keep(name("plural")),
        singular: keep(name("singular")),
        storage: keep(definition.name()),
        namespaced: definition.is_namespaced(),
        short_names: list("shortNames"),
        categories: list("categories"),
        verbs: if custom.terminating {
            VERBS_IN_DELETION
        } else {
            VERBS
        },
        subresources: subresources.leak(),
        traits: &[
            Trait::View,
            Trait::Generation,
            Trait::NoUnconditionalUpdate,
            Trait::OwnFieldLabels,
        ],
        fields: fields(version),
        name_rule: NameRule::Subdomain,
        custom: Some(Box::leak(Box::new(custom))),
    };
    Box::leak(Box::new(row))
}

fn fields(version: &Value) -> &'static [Field] {
    let paths = list(version, "selectableFields").map(|field| text(field, "jsonPath"));
    let fields: Vec<Field> = paths
        .filter(|path| !path.is_empty())
        .map(|path| Field {
            label: keep(path.strip_prefix('.').unwrap_or(path)),
            pointer: keep(&path.replace('.', "/")),
            otherwise: None,
            default: "",
        })
        .collect();
    fields.leak()
}

fn keep(text: &str) -> &'static str {
    text.to_owned().leak()
}
