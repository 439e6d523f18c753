//! Empty objects: the base of creates, and the objects of bookmarks.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use kube_apimachinery::schema::{self, UnknownMembers};
use serde_json::{Value, json};

use super::{Kind, ROWS};

/// The empty objects of all kinds by the kinds' names, with the fields that Go's types always have.
/// Each is made at its first use.
static ZEROS: LazyLock<HashMap<&str, Vec<Zero>>> = LazyLock::new(|| {
    let mut zeros: HashMap<&str, Vec<Zero>> = HashMap::new();
    for kind in ROWS.iter() {
        let object = OnceLock::new();
        zeros
            .entry(&kind.kind)
            .or_default()
            .push(Zero { kind, object });
    }
    zeros
});

/// The empty object of a kind.
struct Zero {
    kind: &'static Kind,
    object: OnceLock<Value>,
}

/// Returns the empty object of a kind.
pub fn zero(kind: &Kind) -> &'static Value {
    static NOTHING: Value = Value::Null;
    let is_kind = |zero: &&Zero| zero.kind.group == kind.group && zero.kind.version == kind.version;
    let mut found = ZEROS.get(&*kind.kind).into_iter().flatten();
    found
        .find(is_kind)
        .map_or(&NOTHING, |zero| zero.object.get_or_init(|| make(zero.kind)))
}

fn make(kind: &Kind) -> Value {
    let empty = json!({"metadata": {}});
    schema::type_of_kind(&kind.api_version(), &kind.kind)
        .and_then(|of| schema::normalize(of.name, &json!({}), UnknownMembers::Drop, "").ok())
        .unwrap_or(empty)
}
