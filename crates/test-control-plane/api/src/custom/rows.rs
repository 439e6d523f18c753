//! Rows of the table of kinds, made of a definition.

use serde_json::Value;

use super::definition::Definition;
use super::resource::{self, Column, CustomResource};
use super::scale::Scale;
use super::schema::{Schema, flag};
use crate::kinds::{Field, Kind, NameRule, Subresource, Trait, Verb};
use crate::members::{text, text_at};

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
/// keys refer to them. A definition's row takes about as much memory as its schema, so a caller
/// makes rows only for a definition that changed.
pub fn rows(definition: &Value) -> Vec<&'static Kind> {
    let read = Definition(definition);
    if !read.is_established() {
        return Vec::new();
    }
    let versions: Vec<&Value> = read.versions().collect();
    let served = versions.iter().filter(|version| flag(version, "served"));
    let mut rows: Vec<&'static Kind> = served
        .map(|version| row(read, version, &versions))
        .collect();
    rows.sort_by(|one, other| super::by_priority(one.version, other.version));
    rows
}

fn row(definition: Definition<'_>, version: &Value, versions: &[&Value]) -> &'static Kind {
    let value = definition.0;
    let name = |member: &str| text_at(value, &format!("/status/acceptedNames/{member}"));
    let (group, kind) = (definition.group(), name("kind"));
    let stored = definition.storage_version().unwrap_or(version);
    let is_stored = text(stored, "name") == text(version, "name");
    let scale = Scale::read(version);
    let has_status = version
        .pointer("/subresources/status")
        .is_some_and(Value::is_object);
    let mut subresources = Vec::new();
    if has_status {
        subresources.push(Subresource::Status);
    }
    if scale.is_some() {
        subresources.push(Subresource::Scale);
    }
    let terminating = definition.is_deleting();
    let custom = CustomResource {
        list_kind: name("listKind").to_owned(),
        stored_version: format!("{group}/{}", text(stored, "name")),
        scale,
        columns: Column::read_all(version),
        warning: resource::warning(group, kind, version, versions),
        terminating,
        schema: schema(version),
        stored_schema: (!is_stored).then(|| schema(stored)),
    };
    let list = |member: &str| -> &'static [&'static str] {
        let names = resource::accepted(value, member);
        let names: Vec<&'static str> = names.iter().map(|name| keep(name)).collect();
        names.leak()
    };
    let row = Kind {
        group: keep(group),
        version: keep(text(version, "name")),
        kind: keep(kind),
        plural: keep(name("plural")),
        singular: keep(name("singular")),
        storage: keep(definition.name()),
        namespaced: definition.is_namespaced(),
        short_names: list("shortNames"),
        categories: list("categories"),
        verbs: if terminating {
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

fn schema(version: &Value) -> Schema {
    let found = version.pointer("/schema/openAPIV3Schema");
    found.map(Schema::read).unwrap_or_default()
}

fn fields(version: &Value) -> &'static [Field] {
    let fields: Vec<Field> = resource::selectable(version)
        .iter()
        .map(|path| Field {
            label: keep(resource::bare(path)),
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
