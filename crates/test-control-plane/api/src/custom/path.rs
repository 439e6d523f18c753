//! Paths to fields of a schema.

use super::schema::{AdditionalProperties, Schema};

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A field of an object.
    Member(String),
    /// A value of a map.
    Key(String),
}

#[cfg(feature = "cel")]
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

/// Reads a path such as `.spec['a.b']`, and returns its steps with the schema at its end, if there is
/// one. `has_brackets` permits names in brackets.
///
/// # Errors
///
/// The reason why it leads nowhere in the schema.
///
/// Upstream: `ValidFieldPath`
pub(crate) fn field_path<'s>(
    path: &str,
    schema: &'s Schema,
    has_brackets: bool,
) -> Result<(Vec<Step>, Option<&'s Schema>), String> {
    let end = || "unexpected end of JSON path".to_owned();
    let nowhere = || "does not refer to a valid field".to_owned();
    let (mut rest, mut found, mut steps) = (path, Some(schema), Vec::new());
    while let Some((token, after)) = token(rest) {
        let name;
        (name, rest) = match token {
            "." => {
                let (name, after) = self::token(after).ok_or_else(end)?;
                (name.to_owned(), after)
            }
            "[" if !has_brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let (quoted, after) = self::token(after).ok_or_else(end)?;
                let inner = quoted
                    .strip_prefix('\'')
                    .and_then(|it| it.strip_suffix('\''));
                let inner = inner
                    .ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                (unescape(inner)?, after)
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        let around = found.ok_or_else(nowhere)?;
        if around.properties.is_empty() {
            found = match &around.additional {
                AdditionalProperties::Of(inner) => Some(inner),
                AdditionalProperties::Any | AdditionalProperties::Forbidden => None,
                AdditionalProperties::None => return Err(nowhere()),
            };
            steps.push(Step::Key(name));
        } else {
            found = Some(around.properties.get(&name).ok_or_else(nowhere)?);
            steps.push(Step::Member(name));
        }
        if token == "[" {
            let (token, after) = self::token(rest).ok_or_else(end)?;
            if token != "]" {
                return Err(format!("expected ] but got {token}"));
            }
            rest = after;
        }
    }
    Ok((steps, found))
}

/// Splits a path behind its first token: a delimiter, a quoted text or the text up to a delimiter.
fn token(path: &str) -> Option<(&str, &str)> {
    let first = path.chars().next()?;
    let end = match first {
        '.' | '[' | ']' => 1,
        '\'' => {
            let mut quotes = path.match_indices('\'').skip(1);
            let end = quotes.find(|(index, _)| !path[..*index].ends_with('\\'));
            end.map_or(path.len(), |(index, _)| index + 1)
        }
        _ => path.find(['.', '[', ']']).unwrap_or(path.len()),
    };
    Some(path.split_at(end))
}

/// Upstream: `unescapeSingleQuote`
fn unescape(text: &str) -> Result<String, String> {
    let (mut unescaped, mut letters) = (String::new(), text.chars());
    while let Some(letter) = letters.next() {
        let escaped = if letter == '\\' { letters.next() } else { None };
        unescaped.push(match escaped {
            None => letter,
            Some('a') => '\x07',
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\x0b',
            Some(found @ ('\'' | '\\')) => found,
            Some(other) => {
                let detail = format!("invalid string literal: invalid escape char \\{other}");
                return Err(detail);
            }
        });
    }
    Ok(unescaped)
}

#[cfg(all(test, feature = "cel"))]
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
            let (steps, _) = field_path(path, &schema, true)?;
            let steps = steps.iter();
            Ok(steps.fold("f".to_owned(), |path, step| step.after(&path)))
        };
        let nowhere = Err("does not refer to a valid field");
        for (path, wanted) in [
            (".x", Ok("f.x")),
            (".x['a.b']", Ok("f.x.a.b")),
            ("['x']['a.b']", Ok("f.x.a.b")),
            (".m.k", Ok("f.m[k]")),
            (".m['\\'']", Ok("f.m[']")),
            (".l.a", nowhere),
            (".l[0]", Err("expected single quoted string but got 0")),
            (".y", nowhere),
            ("..", nowhere),
            ("x", Err("expected [ or . but got: x")),
            ("", Ok("f")),
            (".", Err("unexpected end of JSON path")),
            (".x['a.b'", Err("unexpected end of JSON path")),
            (".x['a.b'.", Err("expected ] but got .")),
            (
                ".m['\\q']",
                Err("invalid string literal: invalid escape char \\q"),
            ),
        ] {
            let found: Result<String, String> = shown(path);
            assert_eq!(found.as_deref().map_err(String::as_str), wanted, "{path}");
        }
        let found = field_path("['x']", &schema, false);
        assert_eq!(found.unwrap_err(), "array notation is not allowed");
    }
}
