//! Empty objects: the base of creates, and the objects of bookmarks.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use kube_apimachinery::schema::{self, UnknownMembers};
use serde_json::{Value, json};

use super::{Kind, ROWS};

/// The empty objects of all kinds, with the fields that Go's types always have.
static ZEROS: LazyLock<BTreeMap<String, Value>> =
    LazyLock::new(|| ROWS.iter().map(|kind| (key(kind), make(kind))).collect());

/// Returns the empty object of a kind.
pub fn zero(kind: &Kind) -> &'static Value {
    static NOTHING: Value = Value::Null;
    ZEROS.get(&key(kind)).unwrap_or(&NOTHING)
}

fn key(kind: &Kind) -> String {
    format!("{}, {}", kind.api_version(), kind.kind)
}

fn make(kind: &Kind) -> Value {
    let empty = json!({"metadata": {}});
    schema::type_of_kind(&kind.api_version(), &kind.kind)
        .and_then(|of| schema::normalize(of.name, &json!({}), UnknownMembers::Drop, "").ok())
        .unwrap_or(empty)
}
