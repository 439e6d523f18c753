//! Rules of `ConfigMaps` and `Secrets`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{FieldError, Subject, at};

/// The largest sum of the sizes of values, in bytes.
const SIZE_MAX: usize = 1024 * 1024;

/// What clients are told about keys.
const KEY_MESSAGE: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or \
     '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
     '[-._a-zA-Z0-9]+')";

const IMMUTABLE: &str = "field is immutable when `immutable` is set";

pub(super) fn config_map(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
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

pub(super) fn secret(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    if let Some(old) = subject.old
        && old.value.get("type") != subject.new.value.get("type")
    {
        let value = subject.new.value.get("type").unwrap_or(&Value::Null);
        errors.push(FieldError::invalid("type", value, "field is immutable"));
    }
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
    let has = |key: &str| data.is_some_and(|data| data.contains_key(key));
    let mut require = |key: &str| {
        if !has(key) {
            errors.push(FieldError::required(format!("data[{key}]"), ""));
        }
    };
    match subject.new.text("/type").unwrap_or_default() {
        "kubernetes.io/service-account-token" => {
            let account = subject
                .new
                .metadata()
                .annotation("kubernetes.io/service-account.name");
            if account.is_none_or(str::is_empty) {
                errors.push(FieldError::required(
                    "metadata.annotations[kubernetes.io/service-account.name]",
                    "",
                ));
            }
        }
        "kubernetes.io/dockercfg" => require(".dockercfg"),
        "kubernetes.io/dockerconfigjson" => require(".dockerconfigjson"),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            require("username");
            require("password");
        }
        "kubernetes.io/ssh-auth" => require("ssh-privatekey"),
        "kubernetes.io/tls" => {
            require("tls.crt");
            require("tls.key");
        }
        _ => {}
    }
}

/// What is sealed can't change, nor be unsealed.
fn immutable(subject: Subject<'_>, sealed: &[&str], errors: &mut Vec<FieldError>) {
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
        if members(&subject.new.value, member) != members(&old.value, member) {
            errors.push(FieldError::forbidden(*member, IMMUTABLE));
        }
    }
}

/// The members of a map that isn't empty.
fn members<'a>(value: &'a Value, member: &str) -> Option<&'a Map<String, Value>> {
    let map = at(value, &format!("/{member}"))?.as_object();
    map.filter(|map| !map.is_empty())
}

fn keys(member: &str, key: &str, errors: &mut Vec<FieldError>) {
    let mut found = Vec::new();
    if key.len() > 253 {
        found.push("must be no more than 253 characters");
    }
    let is_key = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if key.is_empty() || !key.bytes().all(is_key) {
        found.push(KEY_MESSAGE);
    }
    match key {
        "." => found.push("must not be '.'"),
        ".." => found.push("must not be '..'"),
        _ if key.starts_with("..") => found.push("must not start with '..'"),
        _ => {}
    }
    for message in found {
        errors.push(FieldError::invalid(
            format!("{member}[{key}]"),
            &json!(key),
            message,
        ));
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
