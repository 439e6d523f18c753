//! The difference between the pod templates of two revisions.

use std::collections::BTreeSet;

use anyhow::bail;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::output::{Style, Tone};
use crate::revisions::{Revisions, template};

/// Fields by which the elements of a list are matched, as in strategic merge patches; the last one
/// names claim templates.
const NAMES: [&str; 5] = [
    "/name",
    "/containerPort",
    "/mountPath",
    "/key",
    "/metadata/name",
];

/// The difference between two revisions.
#[derive(Debug, Serialize)]
pub(crate) struct Diff {
    set: String,
    from: Side,
    to: Side,
    changes: Vec<Change>,
}

#[derive(Debug, Serialize)]
struct Side {
    name: String,
    revision: i64,
}

/// One changed field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Change {
    /// Path in the template, such as `spec.containers[app].image`.
    pub(crate) path: String,
    /// The old value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) old: Option<Value>,
    /// The new value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) new: Option<Value>,
}

impl Diff {
    /// Compares two revisions, by default the latest and the one before.
    pub(crate) fn new(
        found: &Revisions,
        from: Option<&str>,
        to: Option<&str>,
    ) -> anyhow::Result<Self> {
        let name = &found.set.metadata.name;
        let to = match to {
            Some(to) => found.find(to)?,
            None => match found.all.len().checked_sub(1) {
                Some(latest) => latest,
                None => bail!("StatefulSet {name} has no revisions: no controller has seen it yet"),
            },
        };
        let from = match (from, to.checked_sub(1)) {
            (Some(from), _) => found.find(from)?,
            (None, Some(before)) => before,
            (None, None) => bail!("StatefulSet {name} has no revision before its first"),
        };
        let (Some(old), Some(new)) = (found.all.get(from), found.all.get(to)) else {
            bail!("StatefulSet {name} has no such revision");
        };
        let side = |revision: &crate::model::Revision| Side {
            name: revision.metadata.name.clone(),
            revision: revision.revision,
        };
        Ok(Self {
            set: name.clone(),
            from: side(old),
            to: side(new),
            changes: changes(template(old), template(new)),
        })
    }

    /// The difference for people.
    pub(crate) fn text(&self, style: Style) -> String {
        let title = format!(
            "{}: revision {} ({}) to {} ({})",
            self.set, self.from.revision, self.from.name, self.to.revision, self.to.name
        );
        let mut lines = vec![style.paint(Tone::Bold, &title)];
        if self.changes.is_empty() {
            lines.push("the templates are equal".to_owned());
        }
        for change in &self.changes {
            lines.push(style.paint(Tone::Bold, &change.path));
            let old = change.old.as_ref().map(|value| (Tone::Bad, '-', value));
            let new = change.new.as_ref().map(|value| (Tone::Good, '+', value));
            for (tone, sign, value) in old.into_iter().chain(new) {
                lines.push(style.paint(tone, &format!("  {sign} {}", shown(value))));
            }
        }
        lines.join("\n") + "\n"
    }
}

/// A value in one line.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        other => other.to_string(),
    }
}

/// The changed fields of two templates, in the order of their paths.
pub(crate) fn changes(old: &Value, new: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare("", Some(old), Some(new), &mut found);
    found
}

fn compare(path: &str, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<Change>) {
    // A revision also records how it is applied.
    if path == "$patch" || old == new {
        return;
    }
    match (old, new) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            compare_members(path, old, new, found);
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) if names(old, new).is_some() => {
            let key = names(old, new).unwrap_or_default();
            compare_lists(path, key, old, new, found);
        }
        _ => found.push(Change {
            path: path.to_owned(),
            old: old.cloned(),
            new: new.cloned(),
        }),
    }
}

fn compare_members(
    path: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    found: &mut Vec<Change>,
) {
    let members: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for member in members {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '$';
        let path = match (path, member.chars().all(is_plain)) {
            ("", _) => member.clone(),
            (path, true) => format!("{path}.{member}"),
            (path, false) => format!("{path}[{member}]"),
        };
        compare(&path, old.get(member), new.get(member), found);
    }
}

fn compare_lists(path: &str, key: &str, old: &[Value], new: &[Value], found: &mut Vec<Change>) {
    let name = |element: &Value| element.pointer(key).map(shown).unwrap_or_default();
    let find =
        |list: &'_ [Value], wanted: &str| list.iter().position(|element| name(element) == wanted);
    let mut order: Vec<String> = old.iter().map(name).collect();
    order.extend(
        new.iter()
            .map(name)
            .filter(|name| find(old, name).is_none()),
    );
    for name in order {
        let at = |list: &[Value]| find(list, &name).and_then(|at| list.get(at).cloned());
        let path = format!("{path}[{name}]");
        compare(&path, at(old).as_ref(), at(new).as_ref(), found);
    }
}

/// The field that names every element of both lists uniquely.
fn names(old: &[Value], new: &[Value]) -> Option<&'static str> {
    let is_key = |key: &&str, list: &[Value]| {
        let values: Vec<&Value> = list
            .iter()
            .filter_map(|element| element.pointer(key))
            .collect();
        let distinct: BTreeSet<String> = values.iter().map(|value| shown(value)).collect();
        values.len() == list.len() && distinct.len() == list.len()
    };
    let mut keys = NAMES.into_iter();
    keys.find(|key| is_key(key, old) && is_key(key, new))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(old: &Value, new: &Value) -> Vec<String> {
        let side = |value: &Option<Value>| value.as_ref().map_or_else(|| "none".to_owned(), shown);
        let line = |it: Change| format!("{}: {} > {}", it.path, side(&it.old), side(&it.new));
        changes(old, new).into_iter().map(line).collect()
    }

    #[test]
    fn elements_of_lists_are_matched_by_name() {
        let old = json!({"$patch": "replace", "spec": {"containers": [
            {"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1", "args": ["x"]}]}});
        let new = json!({"spec": {"containers": [
            {"name": "b", "image": "b:2", "args": ["x", "y"]}, {"name": "a", "image": "a:1"},
            {"name": "c"}]}});
        assert_eq!(
            lines(&old, &new),
            [
                r#"spec.containers[b].args: ["x"] > ["x","y"]"#,
                "spec.containers[b].image: b:1 > b:2",
                r#"spec.containers[c]: none > {"name":"c"}"#,
            ]
        );
    }

    #[test]
    fn names_with_dots_stand_in_brackets() {
        let old = json!({"metadata": {"annotations": {"example.com/a": "1"}}});
        let new = json!({"metadata": {"annotations": {"example.com/a": ""}}});
        let change = r#"metadata.annotations[example.com/a]: 1 > """#;
        assert_eq!(lines(&old, &new), [change]);
    }

    #[test]
    fn values_of_another_type_are_replaced() {
        assert_eq!(
            lines(&json!({"a": [1]}), &json!({"a": {"b": 1}})),
            [r#"a: [1] > {"b":1}"#]
        );
        assert_eq!(
            lines(&Value::Null, &json!({"a": 1})),
            [r#": null > {"a":1}"#]
        );
        assert!(lines(&json!({"a": 1}), &json!({"a": 1})).is_empty());
    }
}
