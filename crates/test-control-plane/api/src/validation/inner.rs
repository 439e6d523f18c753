//! Text of objects as the reference's internal types print them: all members, under their Go names.
//!
//! Errors about immutable specs show the difference of such texts.

use kube_apimachinery::schema::{self, Field, Kind, Shape, Type};
use serde_json::Value;

use super::line_diff;

/// Members whose Go name isn't the JSON name with a capital letter.
const GO_NAMES: &str = include_str!("inner/go_names.txt");

/// The internal types that differ from the served type in order or content.
const TYPES: [(&str, &str); 3] = [
    ("PodSpec", include_str!("inner/pod_spec.txt")),
    (
        "PodSecurityContext",
        include_str!("inner/pod_security_context.txt"),
    ),
    ("Volume", include_str!("inner/volume.txt")),
];

/// Members of a pod's spec that the internal type moves to the security context.
const MOVED: [&str; 5] = [
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "shareProcessNamespace",
    "hostUsers",
];

/// Formats the difference of two objects of a type for messages.
pub(super) fn diff(type_name: &str, old: &Value, new: &Value) -> String {
    line_diff::unified(&print(type_name, old), &print(type_name, new))
}

fn print(type_name: &str, value: &Value) -> String {
    let mut text = String::new();
    if let Some(found) = schema::find_type(type_name) {
        let host = if type_name == "PodSpec" {
            value
        } else {
            &Value::Null
        };
        object(found, value, host, 0, &mut text);
    }
    text
}

fn indent(depth: usize, text: &mut String) {
    text.extend(std::iter::repeat_n(' ', depth));
}

/// Prints an object. `host` is the pod spec whose host members belong in the security context.
fn object(of: &Type, value: &Value, host: &Value, depth: usize, text: &mut String) {
    let fields: Vec<&Field> = match TYPES.iter().find(|(name, _)| *name == of.name) {
        Some((_, names)) => names.lines().filter_map(|name| of.field(name)).collect(),
        None => of.fields.iter().collect(),
    };
    let mut members: Vec<(String, String)> = Vec::new();
    if of.name == "PodSecurityContext"
        && let Some(spec) = schema::find_type("PodSpec")
    {
        for name in MOVED {
            if let Some(field) = spec.field(name) {
                members.push(member(field, host.get(name), &Value::Null, depth + 1));
            }
        }
    }
    for field in fields {
        members.push(member(field, value.get(field.name), host, depth + 1));
    }
    text.push('{');
    for (i, (name, value)) in members.iter().enumerate() {
        text.push_str(if i == 0 { "\n" } else { ",\n" });
        indent(depth + 1, text);
        text.extend(["\"", name, "\": ", value]);
    }
    if !members.is_empty() {
        text.push('\n');
        indent(depth, text);
    }
    text.push('}');
}

fn member(field: &Field, value: Option<&Value>, host: &Value, depth: usize) -> (String, String) {
    let mut text = String::new();
    print_field(field, value.unwrap_or(&Value::Null), host, depth, &mut text);
    (go_name(field.name), text)
}

fn go_name(name: &str) -> String {
    let mut rows = GO_NAMES.lines().filter_map(|row| row.split_once(' '));
    if let Some((_, go)) = rows.find(|(json, _)| *json == name) {
        return go.to_owned();
    }
    let mut chars = name.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

fn print_field(field: &Field, value: &Value, host: &Value, depth: usize, text: &mut String) {
    match (field.shape, value) {
        (Shape::Plain, _) => one(field, value, host, depth, text),
        (_, Value::Null) => text.push_str("null"),
        (Shape::Pointer, _) => one(field, value, host, depth, text),
        (Shape::List, Value::Array(items)) => {
            let items = items.iter().map(|item| (None, item));
            several(['[', ']'], items, field, depth, text);
        }
        (Shape::Map, Value::Object(map)) => {
            let items = map.iter().map(|(key, item)| (Some(key.as_str()), item));
            several(['{', '}'], items, field, depth, text);
        }
        (_, other) => text.push_str(&json(other)),
    }
}

fn several<'a>(
    [open, close]: [char; 2],
    items: impl Iterator<Item = (Option<&'a str>, &'a Value)>,
    field: &Field,
    depth: usize,
    text: &mut String,
) {
    text.push(open);
    let mut count = 0;
    for (key, item) in items {
        text.push_str(if count == 0 { "\n" } else { ",\n" });
        count += 1;
        indent(depth + 1, text);
        if let Some(key) = key {
            text.extend([&*json(&Value::from(key)), ": "]);
        }
        one(field, item, &Value::Null, depth + 1, text);
    }
    if count > 0 {
        text.push('\n');
        indent(depth, text);
    }
    text.push(close);
}

/// Prints one value of the field's kind. A missing value prints as zero.
fn one(field: &Field, value: &Value, host: &Value, depth: usize, text: &mut String) {
    match &field.kind {
        // API machinery types have no separate internal form.
        Kind::Struct(of) if of.name == "LabelSelector" => pretty(value, depth, text),
        Kind::Struct(of) => match of.find() {
            Some(found) => object(found, value, host, depth, text),
            None => pretty(value, depth, text),
        },
        _ if !value.is_null() => pretty(value, depth, text),
        Kind::String(_) => text.push_str("\"\""),
        Kind::Bool => text.push_str("false"),
        Kind::Int32 | Kind::Int64 | Kind::IntOrString => text.push('0'),
        Kind::Quantity => text.push_str("\"0\""),
        _ => text.push_str("null"),
    }
}

/// Prints any JSON at the current indentation.
fn pretty(value: &Value, depth: usize, text: &mut String) {
    let entries: Vec<(Option<&String>, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (Some(key), value)).collect(),
        Value::Array(list) => list.iter().map(|value| (None, value)).collect(),
        other => {
            text.push_str(&json(other));
            return;
        }
    };
    let [open, close] = if value.is_object() {
        ['{', '}']
    } else {
        ['[', ']']
    };
    text.push(open);
    for (i, (key, value)) in entries.iter().enumerate() {
        text.push_str(if i == 0 { "\n" } else { ",\n" });
        indent(depth + 1, text);
        if let Some(key) = key {
            text.extend([&*json(&Value::from(key.as_str())), ": "]);
        }
        pretty(value, depth + 1, text);
    }
    if !entries.is_empty() {
        text.push('\n');
        indent(depth, text);
    }
    text.push(close);
}

/// Formats a value as Go does.
fn json(value: &Value) -> String {
    kube_apimachinery::json::to_go_string(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn members_follow_the_internal_types() {
        let spec = |seconds: i64, node: &str| {
            json!({
                "containers": [{"name": "c", "image": "nginx:1", "resources": {}}],
                "nodeName": node,
                "securityContext": {},
                "terminationGracePeriodSeconds": seconds,
            })
        };
        let diff = super::diff("PodSpec", &spec(30, ""), &spec(5, ""));
        let expected = "@@ -36,7 +36,7 @@\n  ],\n  \"EphemeralContainers\": null,\n  \
                        \"RestartPolicy\": \"\",\n- \"TerminationGracePeriodSeconds\": 30,\n+ \
                        \"TerminationGracePeriodSeconds\": 5,\n  \"ActiveDeadlineSeconds\": \
                        null,\n  \"DNSPolicy\": \"\",\n  \"NodeSelector\": null,\n";
        assert_eq!(diff, expected);
        let diff = super::diff("PodSpec", &spec(30, ""), &spec(30, "q"));
        assert!(diff.starts_with("@@ -42,7 +42,7 @@\n"), "{diff}");
        assert!(diff.ends_with(
            "\"SecurityContext\": {\n   \"HostNetwork\": false,\n   \"HostPID\": false,\n"
        ));
    }
}
