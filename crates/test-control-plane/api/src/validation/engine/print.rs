//! Text of objects as upstream's internal types print them: all fields, under their Go names.
//!
//! Errors quote invalid objects in this form, and those about immutable specs show the difference of
//! such texts.

use kube_apimachinery::schema::{self, Field, Kind, Shape, Type, Version};
use serde_json::Value;

use super::line_diff;

/// The type of a value: an object's, or that of a field with a list, a map or a plain value.
#[derive(Clone, Copy, Debug)]
pub(in crate::validation) enum Typed {
    /// An object of this type.
    Object(&'static Type),
    /// The whole value of a field.
    Member(&'static Field),
    /// One element of a list, or one value of a map.
    Element(&'static Field),
}

/// Fields whose Go name isn't the JSON name with a capital letter.
const GO_NAMES: &str = include_str!("print/go_names.txt");

/// The internal types that differ from the served type in order or content.
const TYPES: [(&str, &str); 3] = [
    ("PodSpec", include_str!("print/pod_spec.txt")),
    (
        "PodSecurityContext",
        include_str!("print/pod_security_context.txt"),
    ),
    ("Volume", include_str!("print/volume.txt")),
];

/// Fields of a pod's spec that the internal type moves to the security context.
const MOVED: [&str; 5] = [
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "shareProcessNamespace",
    "hostUsers",
];

/// Fields that the internal types hold without a pointer, unlike the served types.
const PLAIN: [&str; 5] = [
    "RollingUpdateDaemonSet.maxSurge",
    "RollingUpdateDaemonSet.maxUnavailable",
    "RollingUpdateDeployment.maxSurge",
    "RollingUpdateDeployment.maxUnavailable",
    "RollingUpdateStatefulSetStrategy.partition",
];

/// Types of the API machinery, which have no internal form: they print as they are served.
const SERVED: [&str; 4] = [
    "LabelSelector",
    "LabelSelectorRequirement",
    "ObjectMeta",
    "OwnerReference",
];

/// Formats the difference of two objects of a type for messages, with the fields of a version.
pub(super) fn diff(version: Version, type_name: &str, old: &Value, new: &Value) -> String {
    let print = |value| match version.find_type(type_name) {
        Some(of) => Printer::pretty().of(Typed::Object(of), value),
        None => String::new(),
    };
    line_diff::unified(&print(old), &print(new))
}

/// Formats an object or a list on one line.
pub(super) fn compact(of: Typed, value: &Value) -> String {
    Printer::default().of(of, value)
}

/// Formats an object of a type on one line.
pub(in crate::validation) fn object(type_name: &str, value: &Value) -> String {
    schema::find_type(type_name).map_or_else(
        || plain(value),
        |of| Printer::default().of(Typed::Object(of), value),
    )
}

/// Formats a plain value, or one without a type.
pub(in crate::validation) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => kube_apimachinery::json::to_go_string(other),
    }
}

/// Formats a text as Go's `%q`.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            c if c.is_ascii_control() => quoted.extend(["\\x", &format!("{:02x}", u32::from(c))]),
            c if c.is_control() => quoted.extend(["\\u", &format!("{:04x}", u32::from(c))]),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[derive(Default)]
struct Printer {
    text: String,
    /// True to write one field per line.
    is_pretty: bool,
    depth: usize,
}

impl Printer {
    fn pretty() -> Self {
        Self {
            is_pretty: true,
            ..Self::default()
        }
    }

    fn of(mut self, of: Typed, value: &Value) -> String {
        match of {
            Typed::Object(of) => self.object(of, value, &Value::Null),
            Typed::Member(field) => self.member(field, value, &Value::Null),
            Typed::Element(field) => self.one(field, value, &Value::Null),
        }
        self.text
    }

    fn open(&mut self, bracket: char) {
        self.text.push(bracket);
        self.depth += 1;
    }

    fn close(&mut self, bracket: char, is_empty: bool) {
        self.depth -= 1;
        if !is_empty {
            self.line();
        }
        self.text.push(bracket);
    }

    fn line(&mut self) {
        if self.is_pretty {
            self.text.push('\n');
            self.text.extend(std::iter::repeat_n(' ', self.depth));
        }
    }

    /// Begins an item after `count` others.
    fn item(&mut self, count: usize, name: Option<&str>) {
        if count > 0 {
            self.text.push(',');
        }
        self.line();
        if let Some(name) = name {
            let colon = if self.is_pretty { ": " } else { ":" };
            self.text.extend([&*json(&Value::from(name)), colon]);
        }
    }

    /// Prints an object. `host` is the pod spec whose host fields belong in the security context.
    fn object(&mut self, of: &'static Type, value: &Value, host: &Value) {
        if SERVED.contains(&of.name) {
            return self.served(Some(of), value);
        }
        let host = if of.name == "PodSpec" { value } else { host };
        self.open('{');
        let mut count = 0;
        if of.name == "PodSecurityContext"
            && let Some(spec) = schema::find_type("PodSpec")
        {
            for field in MOVED.iter().filter_map(|name| spec.field(name)) {
                self.item(count, Some(&go_name(of, field.name)));
                self.member(field, &host[field.name], &Value::Null);
                count += 1;
            }
        }
        let fields: Vec<&'static Field> = match TYPES.iter().find(|(name, _)| *name == of.name) {
            Some((_, names)) => names.lines().filter_map(|name| of.field(name)).collect(),
            None => of.fields.iter().collect(),
        };
        for field in fields {
            let value = value.get(field.name).unwrap_or(&Value::Null);
            if let Some(metadata) = field.object_type().filter(|of| of.name == "ObjectMeta") {
                // An embedded struct: its fields are those of the object.
                self.served_members(Some(metadata), value, &mut count);
                continue;
            }
            self.item(count, Some(&go_name(of, field.name)));
            match value {
                Value::Null if is_plain(of, field.name) => self.one(field, value, host),
                _ => self.member(field, value, host),
            }
            count += 1;
        }
        self.close('}', count == 0);
    }

    fn member(&mut self, field: &'static Field, value: &Value, host: &Value) {
        match (field.shape, value) {
            (Shape::Plain, _) => self.one(field, value, host),
            (_, Value::Null) => self.text.push_str("null"),
            (Shape::Pointer, _) => self.one(field, value, host),
            (Shape::List, Value::Array(items)) => {
                self.open('[');
                for (i, item) in items.iter().enumerate() {
                    self.item(i, None);
                    self.one(field, item, &Value::Null);
                }
                self.close(']', items.is_empty());
            }
            (Shape::Map, Value::Object(map)) => {
                self.open('{');
                for (i, (key, item)) in map.iter().enumerate() {
                    self.item(i, Some(key));
                    self.one(field, item, &Value::Null);
                }
                self.close('}', map.is_empty());
            }
            (_, other) => self.text.push_str(&json(other)),
        }
    }

    /// Prints one value of the field's kind. A missing value prints as zero.
    fn one(&mut self, field: &'static Field, value: &Value, host: &Value) {
        match (&field.kind, field.object_type()) {
            (_, Some(of)) if value.is_object() || field.shape == Shape::Plain => {
                self.object(of, value, host);
            }
            // The text of a value that is no object, see `go::json::held`.
            (Kind::Raw, _) if value.is_string() => {
                self.text.push_str(value.as_str().unwrap_or_default());
            }
            _ if !value.is_null() => self.served(None, value),
            (Kind::String(_), _) => self.text.push_str("\"\""),
            (Kind::Bool, _) => self.text.push_str("false"),
            (Kind::Int32 | Kind::Int64 | Kind::IntOrString, _) => self.text.push('0'),
            (Kind::Quantity, _) => self.text.push_str("\"0\""),
            _ => self.text.push_str("null"),
        }
    }

    /// Prints any JSON, with the fields in the order of the type.
    fn served(&mut self, of: Option<&'static Type>, value: &Value) {
        match value {
            Value::Object(_) => {
                self.open('{');
                let mut count = 0;
                self.served_members(of, value, &mut count);
                self.close('}', count == 0);
            }
            Value::Array(list) => {
                self.open('[');
                for (i, item) in list.iter().enumerate() {
                    self.item(i, None);
                    self.served(of, item);
                }
                self.close(']', list.is_empty());
            }
            other => self.text.push_str(&json(other)),
        }
    }

    fn served_members(&mut self, of: Option<&'static Type>, value: &Value, count: &mut usize) {
        let fields = of.map(|of| of.fields.as_slice()).unwrap_or_default();
        let declared = |name: &str| fields.iter().position(|field| field.name == name);
        let mut members: Vec<_> = value.as_object().into_iter().flatten().collect();
        members.sort_by_key(|(name, _)| declared(name).unwrap_or(usize::MAX));
        for (name, value) in members {
            let field = fields.iter().find(|field| field.name == name);
            if field.is_some_and(|field| is_omitted(field, value)) {
                continue;
            }
            self.item(*count, Some(name));
            *count += 1;
            self.served(field.and_then(Field::object_type), value);
        }
    }
}

/// Returns true for an empty list or map that Go omits.
fn is_omitted(field: &Field, value: &Value) -> bool {
    let is_empty = match (field.shape, value) {
        (Shape::List, Value::Array(elements)) => elements.is_empty(),
        (Shape::Map, Value::Object(members)) => members.is_empty(),
        _ => false,
    };
    is_empty && !field.always
}

/// Returns true for a field that the internal type holds without a pointer.
fn is_plain(of: &Type, name: &str) -> bool {
    PLAIN.contains(&&*format!("{}.{name}", of.name))
}

/// Returns the name of a field in errors that begin with its Go name: in lower case at the start.
pub(super) fn lower_go_name(of: &Type, name: &str) -> String {
    let go = go_name(of, name);
    let mut chars = go.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}

/// Returns the Go name of a field.
fn go_name(of: &Type, name: &str) -> String {
    let qualified = format!("{}.{name}", of.name);
    let mut rows = GO_NAMES.lines().filter_map(|row| row.split_once(' '));
    let special = rows.find(|(json, _)| *json == name || *json == qualified);
    if let Some((_, go)) = special {
        return go.to_owned();
    }
    let mut chars = name.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

/// Formats a value as Go does.
fn json(value: &Value) -> String {
    kube_apimachinery::json::to_go_string(value)
}

#[cfg(test)]
mod tests {
    use kube_apimachinery::schema::Version;
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
        let diff = super::diff(Version::V1_36, "PodSpec", &spec(30, ""), &spec(5, ""));
        let expected = "@@ -36,7 +36,7 @@\n  ],\n  \"EphemeralContainers\": null,\n  \
                        \"RestartPolicy\": \"\",\n- \"TerminationGracePeriodSeconds\": 30,\n+ \
                        \"TerminationGracePeriodSeconds\": 5,\n  \"ActiveDeadlineSeconds\": \
                        null,\n  \"DNSPolicy\": \"\",\n  \"NodeSelector\": null,\n";
        assert_eq!(diff, expected);
        let diff = super::diff(Version::V1_36, "PodSpec", &spec(30, ""), &spec(30, "q"));
        assert!(diff.starts_with("@@ -42,7 +42,7 @@\n"), "{diff}");
        assert!(diff.ends_with(
            "\"SecurityContext\": {\n   \"HostNetwork\": false,\n   \"HostPID\": false,\n"
        ));
    }

    #[test]
    fn objects_print_on_one_line_in_the_order_of_their_type() {
        let profile = json!({"localhostProfile": "a<b", "type": "Localhost"});
        assert_eq!(
            super::object("SeccompProfile", &profile),
            r#"{"Type":"Localhost","LocalhostProfile":"a\u003cb"}"#
        );
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}});
        let printed = super::object("PodTemplateSpec", &template);
        let start = r#"{"labels":{"a":"b"},"Spec":{"Volumes":null,"InitContainers":null,"#;
        assert!(printed.starts_with(start), "{printed}");
        let selector = json!({"matchExpressions": [], "matchLabels": {"a": "b"}});
        assert_eq!(
            super::object("LabelSelector", &selector),
            r#"{"matchLabels":{"a":"b"}}"#
        );
        assert_eq!(super::plain(&json!("a<\"\n")), r#""a<\"\n""#);
    }
}
