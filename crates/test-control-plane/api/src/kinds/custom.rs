//! Kind rows generated from a CRD.

use std::sync::Arc;

use serde_json::Value;

use super::{Field, Kind, Rounds, Subresource, Trait, Verb};
use crate::custom::{self, CustomResource, Definition, flag, texts};
use crate::members::{list, text};

/// The verbs of custom resources, in discovery order.
const VERBS: [Verb; 8] = [
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Create,
    Verb::Update,
    Verb::Watch,
];

/// Returns a row for each served version of an established definition.
pub fn of_definition(definition: &Value) -> Vec<Arc<Kind>> {
    let read = Definition(definition);
    if !read.is_established() {
        return Vec::new();
    }
    let served = read.versions().filter(|version| flag(version, "served"));
    let mut rows: Vec<Kind> = served.map(|version| row(read, version)).collect();
    rows.sort_by(|one, other| custom::by_priority(&one.version, &other.version));
    rows.into_iter().map(Arc::new).collect()
}

fn row(definition: Definition<'_>, version: &Value) -> Kind {
    let accepted = definition.0.pointer("/status/acceptedNames");
    let names = accepted.unwrap_or(&Value::Null);
    let custom = CustomResource::read(definition, version);
    let mut verbs = VERBS.to_vec();
    if custom.terminating {
        verbs.retain(|verb| !matches!(verb, Verb::Create | Verb::Patch | Verb::Update));
    }
    let status = version.pointer("/subresources/status");
    let has_status = status.is_some_and(Value::is_object);
    let status = has_status.then_some(Subresource::Status);
    let scale = custom.scale.is_some().then_some(Subresource::Scale);
    Kind {
        singular: text(names, "singular").to_owned(),
        storage: definition.name().into(),
        namespaced: definition.is_namespaced(),
        short_names: texts(names, "shortNames"),
        categories: texts(names, "categories"),
        verbs,
        subresources: status.into_iter().chain(scale).collect(),
        traits: vec![
            Trait::View,
            Trait::Generation,
            Trait::NoUnconditionalUpdate,
            Trait::OwnFieldLabels,
        ],
        fields: fields(version),
        rounds: Rounds::Update,
        custom: Some(custom),
        ..Kind::plain(
            definition.group(),
            text(version, "name"),
            text(names, "kind"),
            text(names, "plural"),
        )
    }
}

fn fields(version: &Value) -> Vec<Field> {
    let paths = list(version, "selectableFields").map(|field| text(field, "jsonPath"));
    let fields = paths.filter(|path| !path.is_empty()).map(|path| Field {
        label: path.strip_prefix('.').unwrap_or(path).to_owned(),
        pointer: path.replace('.', "/"),
        otherwise: None,
        default: String::new(),
    });
    fields.collect()
}
