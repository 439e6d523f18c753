//! Values of a plan's file as a person reads them.

use serde_json::Value;

/// Phrases a value: a text as words, an object as its fields.
pub(super) fn phrase(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(members) if members.len() == 1 => {
            let phrases = members.iter().map(|(name, value)| tagged(name, value));
            phrases.collect()
        }
        other => members(other),
    }
}

/// Phrases the only field of an object, which is the tag of an enum.
fn tagged(name: &str, value: &Value) -> String {
    match value {
        Value::Null => words(name),
        value => format!("{}: {}", words(name), members(value)),
    }
}

/// Lists the fields of an object that have a value.
fn members(value: &Value) -> String {
    let Value::Object(members) = value else {
        return value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
    };
    let members = members.iter().filter(|(_, value)| !value.is_null());
    let listed: Vec<String> = members
        .map(|(name, value)| format!("{} {}", words(name), nested(value)))
        .collect();
    listed.join(", ")
}

/// Phrases a value within another one; documents keep their JSON form.
fn nested(value: &Value) -> String {
    match value {
        Value::Object(members) if members.len() == 1 => format!("({})", phrase(value)),
        other => other
            .as_str()
            .map_or_else(|| other.to_string(), str::to_owned),
    }
}

/// Splits a name in camel case into words.
fn words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}
