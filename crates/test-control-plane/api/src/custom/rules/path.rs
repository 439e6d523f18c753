//! Paths of rules to the member at fault.

use crate::custom::schema::{AdditionalProperties, Schema};

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A member of an object.
    Member(String),
    /// A value of a map.
    Key(String),
}

impl Step {
    /// Returns the path of this step from another.
    pub(crate) fn after(&self, path: &str) -> String {
        match self {
            Self::Member(name) if path.is_empty() => name.clone(),
            Self::Member(name) => format!("{path}.{name}"),
            Self::Key(name) => format!("{path}[{name}]"),
        }
    }
}

/// Reads a path such as `.spec['a.b']`. Returns `None` if it leads nowhere in the schema, or into a
/// list.
///
/// Upstream: `ValidFieldPath`
pub(crate) fn field_path(path: &str, schema: &Schema) -> Option<Vec<Step>> {
    let (mut rest, mut schema, mut steps) = (path, schema, Vec::new());
    while !rest.is_empty() {
        let (name, after) = next(rest)?;
        let step = match (schema.properties.get(&name), &schema.additional) {
            (Some(inner), _) => {
                schema = inner;
                Step::Member(name)
            }
            (None, AdditionalProperties::Of(inner)) => {
                schema = inner;
                Step::Key(name)
            }
            (None, _) => return None,
        };
        steps.push(step);
        rest = after;
    }
    Some(steps).filter(|steps| !steps.is_empty())
}

/// Splits a path behind its first name.
fn next(path: &str) -> Option<(String, &str)> {
    if let Some(rest) = path.strip_prefix('.') {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, after) = rest.split_at_checked(end)?;
        return Some((name.to_owned(), after)).filter(|(name, _)| !name.is_empty());
    }
    let (mut name, mut letters) = (String::new(), path.strip_prefix("['")?.chars());
    loop {
        match letters.next()? {
            '\\' => name.push(letters.next()?),
            '\'' => break,
            letter => name.push(letter),
        }
    }
    let after = letters.as_str().strip_prefix(']')?;
    Some((name, after))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_members_of_the_schema() {
        let schema = Schema::read(&json!({"type": "object", "properties": {
            "x": {"type": "object", "properties": {"a.b": {"type": "string"}}},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
            "l": {"type": "array", "items": {"type": "string"}},
        }}));
        let shown = |path: &str| {
            let steps = field_path(path, &schema)?;
            Some(
                steps
                    .iter()
                    .fold("f".to_owned(), |path, step| step.after(&path)),
            )
        };
        for (path, wanted) in [
            (".x", Some("f.x")),
            (".x['a.b']", Some("f.x.a.b")),
            ("['x']['a.b']", Some("f.x.a.b")),
            (".m.k", Some("f.m[k]")),
            (".l[0]", None),
            (".y", None),
            ("x", None),
            ("", None),
            (".x['a.b'", None),
        ] {
            assert_eq!(shown(path).as_deref(), wanted, "{path}");
        }
    }
}
