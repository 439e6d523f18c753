//! The text of a stored object, read by the type that it names.

use kube_apimachinery::schema;
use serde_json::Value;

use crate::go::json::cursor::Cursor;
use crate::go::json::read::{DuplicateMembers, Expect, Scope, read_checked};

/// Parses a stored object by the type that it names.
pub(super) fn read(text: &[u8]) -> Value {
    let (api_version, kind) = type_meta(text);
    let found = schema::type_of_kind(&api_version, &kind);
    let expect = found.map_or(Expect::Anything, Expect::Object);
    read_checked(text, expect, DuplicateMembers::Merge, Scope::Root)
}

pub(super) fn type_meta(text: &[u8]) -> (String, String) {
    let member = |name| {
        let raw = raw_member(text, name).filter(|raw| raw.starts_with(b"\""));
        raw.map(|raw| Cursor::new(raw).string()).unwrap_or_default()
    };
    (member("apiVersion"), member("kind"))
}

/// Returns the bytes of a top-level field. The last one wins.
pub(crate) fn raw_member<'a>(text: &'a [u8], wanted: &str) -> Option<&'a [u8]> {
    let mut cursor = Cursor::new(text);
    let mut found = None;
    let mut more = cursor.open(b'{', b'}');
    while more {
        let name = cursor.name();
        let raw = cursor.raw();
        if name == wanted {
            found = Some(raw);
        }
        more = cursor.next(b'}');
    }
    found
}
