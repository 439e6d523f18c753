//! Rules of `ConfigMaps` and `Secrets`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::Subject;
use super::engine::{Errors, Place};
use crate::go::{self, names};
use crate::status::FieldError;

/// Maximum total size of the values, in bytes.
const SIZE_MAX: usize = 1024 * 1024;

const IMMUTABLE: &str = "field is immutable when `immutable` is set";

/// The keys of secrets by their type.
const REQUIRED_KEYS: &[(&str, &[&str])] = &[
    ("kubernetes.io/dockercfg", &[".dockercfg"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
    (BASIC_AUTH, &["username", "password"]),
    (SSH_AUTH, &["ssh-privatekey"]),
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
];

/// A type of secrets that needs only one of its keys.
const BASIC_AUTH: &str = "kubernetes.io/basic-auth";

/// A type of secrets whose key must not be empty.
const SSH_AUTH: &str = "kubernetes.io/ssh-auth";

pub(super) fn config_map(subject: Subject<'_>, errors: &mut Errors) {
    immutable(subject, &["data", "binaryData"], errors);
    let value = &subject.new.value;
    let binary = members(value, "binaryData");
    let mut size = 0;
    for (key, text) in members(value, "data").into_iter().flatten() {
        keys("data", key, errors);
        if binary.is_some_and(|binary| binary.contains_key(key)) {
            errors.push(FieldError::invalid(
                format!("data[{key}]"),
                &json!(key),
                "duplicate of key present in binaryData",
            ));
        }
        size += text.as_str().map_or(0, str::len);
    }
    for (key, bytes) in binary.into_iter().flatten() {
        keys("binaryData", key, errors);
        size += decoded_size(bytes);
    }
    if size > SIZE_MAX {
        errors.push(FieldError::too_long("[]", &too_long()));
    }
}

pub(super) fn secret(subject: Subject<'_>, place: &Place<'_>, errors: &mut Errors) {
    place.check("Secret", errors);
    immutable(subject, &["data"], errors);
    let value = &subject.new.value;
    let data = members(value, "data");
    let mut size = 0;
    for (key, bytes) in data.into_iter().flatten() {
        keys("data", key, errors);
        size += decoded_size(bytes);
    }
    if size > SIZE_MAX {
        errors.push(FieldError::too_long("data", &too_long()));
    }
    let kind = subject.new.text("/type").unwrap_or_default();
    if kind == "kubernetes.io/service-account-token" {
        let account = "kubernetes.io/service-account.name";
        let found = subject.new.metadata().annotation(account);
        if found.is_none_or(str::is_empty) {
            let field = format!("metadata.annotations[{account}]");
            errors.push(FieldError::required(field, ""));
        }
    }
    let row = REQUIRED_KEYS.iter().find(|(of, _)| *of == kind);
    let keys = row.map_or(&[][..], |(_, keys)| keys);
    let has = |key: &str| {
        let found = data.and_then(|data| data.get(key));
        found.is_some_and(|found| kind != SSH_AUTH || found.as_str() != Some(""))
    };
    if kind == BASIC_AUTH && keys.iter().any(|key| has(key)) {
        return;
    }
    for key in keys.iter().filter(|key| !has(key)) {
        errors.push(FieldError::required(format!("data[{key}]"), ""));
    }
    let json = keys.iter().filter(|key| key.starts_with(".docker"));
    errors.extend(json.filter_map(|key| not_json(data, key)));
}

/// Returns the error for a value that must be a JSON object.
fn not_json(data: Option<&Map<String, Value>>, key: &str) -> Option<FieldError> {
    let text = STANDARD.decode(data?.get(key)?.as_str()?).ok()?;
    let detail = match serde_json::from_slice::<Value>(&text) {
        Ok(Value::Object(_) | Value::Null) => return None,
        Ok(other) => format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go::json::type_name(&other.to_string())
        ),
        Err(err) => go::json::syntax_error(&text).unwrap_or_else(|| err.to_string()),
    };
    let (field, value) = (format!("data[{key}]"), "\"<secret contents redacted>\"");
    Some(FieldError::invalid_text(field, value, &detail))
}

/// Rejects changes to the immutable fields, and to `immutable` itself.
fn immutable(subject: Subject<'_>, sealed: &[&str], errors: &mut Errors) {
    let Some(old) = subject
        .old
        .filter(|old| old.value.get("immutable") == Some(&json!(true)))
    else {
        return;
    };
    if subject.new.value.get("immutable") != Some(&json!(true)) {
        errors.push(FieldError::forbidden("immutable", IMMUTABLE));
    }
    for member in sealed {
        // An empty map differs from none, as in upstream.
        if subject.new.value.get(*member) != old.value.get(*member) {
            errors.push(FieldError::forbidden(*member, IMMUTABLE));
        }
    }
}

/// Returns the fields of a map, or `None` if it is empty.
fn members<'a>(value: &'a Value, member: &str) -> Option<&'a Map<String, Value>> {
    let map = value.get(member)?.as_object();
    map.filter(|map| !map.is_empty())
}

fn keys(member: &str, key: &str, errors: &mut Errors) {
    for message in names::config_key(key) {
        let field = format!("{member}[{key}]");
        errors.push(FieldError::invalid(field, &json!(key), message));
    }
}

fn decoded_size(bytes: &Value) -> usize {
    let text = bytes.as_str().unwrap_or_default();
    STANDARD
        .decode(text)
        .map_or(text.len(), |bytes| bytes.len())
}

fn too_long() -> String {
    format!("may not be more than {SIZE_MAX} bytes")
}
