//! Actions as a person reads them, in the words of the plan's file.

use std::fmt;

use serde_json::Value;

use super::Action;

/// Writes the name of an action and its fields: `scale: set web, replicas 3`.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = serde_json::to_value(self).map_err(|_| fmt::Error)?;
        f.write_str(&phrase(&action))
    }
}

/// Phrases a value: a text as words, an object as its fields.
fn phrase(value: &Value) -> String {
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

#[cfg(test)]
mod tests {
    use super::super::{Cascade, Fault, Millis};
    use super::*;

    #[test]
    fn actions_are_phrased_in_words() {
        let scale = Action::Scale {
            set: "web".into(),
            replicas: 3,
        };
        assert_eq!(scale.to_string(), "scale: replicas 3, set web");
        let delete = Action::Delete {
            set: "web".into(),
            cascade: Cascade::Orphan,
        };
        assert_eq!(delete.to_string(), "delete: cascade Orphan, set web");
        let outage = Action::Fault {
            fault: Fault::Outage,
            time: Millis(5),
        };
        assert_eq!(outage.to_string(), "fault: fault outage, time 5");
    }
}
