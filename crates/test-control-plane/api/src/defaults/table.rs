//! Defaults as data, see `table.txt`.
//!
//! The schema says the rest: a plain field that is zero counts as absent, a pointer only if it is
//! null; objects on the path that are no pointers always exist. Values of a wrong type stay
//! unchanged.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use kube_apimachinery::schema::{self, Field, Shape, Type};
use serde_json::{Map, Value, json};

use crate::kinds::{Kind, type_of};

/// The parsed lines by kind. They are immutable.
static DEFAULTS: LazyLock<BTreeMap<&'static str, Vec<Default>>> =
    LazyLock::new(|| parse(include_str!("table.txt")));

/// The default of a field.
struct Default {
    path: Vec<Step>,
    /// Whether it also replaces an empty list.
    replaces_empty: bool,
    source: Source,
}

/// A step of a path.
struct Step {
    member: &'static str,
    condition: Option<Condition>,
}

/// A condition of an object on the path: the text of a field.
struct Condition {
    member: &'static str,
    texts: Vec<&'static str>,
    is_wanted: bool,
}

/// The source of a default.
enum Source {
    /// This value.
    Value(Value),
    /// A copy of the field next to it.
    Beside(&'static str),
}

/// Sets the defaults of an object.
pub(super) fn set_defaults(kind: &Kind, object: &mut Value) {
    let Some((of, members)) = type_of(kind).zip(object.as_object_mut()) else {
        return;
    };
    for default in DEFAULTS.get(&*kind.kind).into_iter().flatten() {
        default.set(of, members, &default.path);
    }
}

impl Default {
    fn set(&self, of: &Type, object: &mut Map<String, Value>, path: &[Step]) {
        let Some((step, rest)) = path.split_first() else {
            return;
        };
        let Some(field) = of.field(step.member) else {
            return;
        };
        if rest.is_empty() {
            let value = object.get(field.name);
            let is_empty = value.and_then(Value::as_array).is_some_and(Vec::is_empty);
            if (is_absent(field, value) || self.replaces_empty && is_empty)
                && let Some(value) = self.source.value(object)
            {
                object.insert(field.name.to_owned(), value);
            }
            return;
        }
        if field.shape == Shape::Plain && object.get(field.name).is_none_or(Value::is_null) {
            object.insert(field.name.to_owned(), json!({}));
        }
        let Some(inner) = field.object_type() else {
            return;
        };
        let objects = match object.get_mut(field.name) {
            Some(Value::Array(elements)) => elements.as_mut_slice(),
            Some(one) => std::slice::from_mut(one),
            None => &mut [],
        };
        for object in objects.iter_mut().filter_map(Value::as_object_mut) {
            if step
                .condition
                .as_ref()
                .is_none_or(|condition| condition.holds(object))
            {
                self.set(inner, object, rest);
            }
        }
    }
}

impl Condition {
    fn holds(&self, object: &Map<String, Value>) -> bool {
        let text = object.get(self.member).and_then(Value::as_str);
        self.texts.contains(&text.unwrap_or_default()) == self.is_wanted
    }
}

impl Source {
    fn value(&self, object: &Map<String, Value>) -> Option<Value> {
        match self {
            Self::Value(value) => Some(value.clone()),
            Self::Beside(member) => object
                .get(*member)
                .filter(|value| is_copied(value))
                .cloned(),
        }
    }
}

/// Returns false for a number that no port has room for: the error about it names the first field.
fn is_copied(value: &Value) -> bool {
    !value.is_number()
        || value
            .as_i64()
            .is_some_and(|number| i32::try_from(number).is_ok())
}

fn is_absent(field: &Field, value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(_) if field.shape != Shape::Plain => false,
        Some(Value::String(text)) => text.is_empty() && !is_number(field),
        Some(Value::Number(number)) => number.as_i64() == Some(0) && !is_text(field),
        Some(_) => false,
    }
}

fn is_text(field: &Field) -> bool {
    matches!(field.kind, schema::Kind::String(_))
}

fn is_number(field: &Field) -> bool {
    matches!(field.kind, schema::Kind::Int32 | schema::Kind::Int64)
}

fn parse(text: &'static str) -> BTreeMap<&'static str, Vec<Default>> {
    let mut kinds: BTreeMap<&'static str, Vec<Default>> = BTreeMap::new();
    let mut kind = "";
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix("  ") {
            Some(row) => kinds.entry(kind).or_default().extend(parse_row(row)),
            None => kind = line,
        }
    }
    kinds
}

fn parse_row(row: &'static str) -> Option<Default> {
    let (path, source) = row.split_once(" = ")?;
    let list = path.strip_suffix("[]");
    let path = list.unwrap_or(path);
    Some(Default {
        replaces_empty: list.is_some(),
        path: path.split('.').map(parse_step).collect::<Option<_>>()?,
        source: match source.strip_prefix('.') {
            Some(member) => Source::Beside(member),
            None => Source::Value(serde_json::from_str(source).ok()?),
        },
    })
}

fn parse_step(step: &'static str) -> Option<Step> {
    let Some((member, condition)) = step.split_once('[') else {
        let condition = None;
        return Some(Step {
            member: step,
            condition,
        });
    };
    let (of, texts) = condition.strip_suffix(']')?.split_once('=')?;
    let condition = Condition {
        member: of.trim_end_matches('!'),
        texts: texts.split('|').collect(),
        is_wanted: !of.ends_with('!'),
    };
    let condition = Some(condition);
    Some(Step { member, condition })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::KINDS;

    #[test]
    fn every_line_names_a_member() {
        let lines = include_str!("table.txt").lines();
        let rows = lines.filter_map(|line| line.strip_prefix("  "));
        assert!(
            rows.clone().all(|row| parse_row(row).is_some()),
            "a line is misspelt"
        );
        for (kind, defaults) in &*DEFAULTS {
            let kind = KINDS.iter().find(|known| known.kind == *kind).unwrap();
            for default in defaults {
                let mut of = type_of(kind);
                for step in &default.path {
                    let field = of.and_then(|of| of.field(step.member));
                    let field = field.unwrap_or_else(|| panic!("{}: {}", kind.kind, step.member));
                    of = field.object_type();
                }
            }
        }
    }

    fn defaulted(kind: &str, mut object: Value) -> Value {
        let kind = KINDS.iter().find(|known| known.kind == kind).unwrap();
        set_defaults(kind, &mut object);
        object
    }

    #[test]
    fn only_absent_members_are_set() {
        let spec =
            json!({"replicas": 0, "progressDeadlineSeconds": null, "strategy": {"type": ""}});
        assert_eq!(
            defaulted("Deployment", json!({"spec": spec}))["spec"],
            json!({
                "replicas": 0,
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
                },
            })
        );
        let spec = json!({"strategy": {"type": "Recreate", "rollingUpdate": {}}});
        let found = defaulted("Deployment", json!({"spec": spec}));
        assert_eq!(found["spec"]["strategy"], spec["strategy"]);
        let odd = json!({"spec": 5, "status": []});
        assert_eq!(defaulted("Deployment", odd.clone()), odd);
    }

    #[test]
    fn elements_of_lists_are_set() {
        let ports = json!([{"port": 80}, {"port": 81, "targetPort": "http", "protocol": "UDP"}, 3]);
        let found = defaulted(
            "Service",
            json!({"spec": {"ports": ports, "type": "ExternalName"}}),
        );
        assert_eq!(
            found["spec"],
            json!({
                "sessionAffinity": "None",
                "type": "ExternalName",
                "ports": [
                    {"port": 80, "protocol": "TCP", "targetPort": 80},
                    {"port": 81, "protocol": "UDP", "targetPort": "http"},
                    3,
                ],
            })
        );
    }
}
