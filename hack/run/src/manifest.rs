//! Manifests: YAML files of several documents, as for kubectl.

use std::fmt;

use serde_json::Value;

/// One object of a manifest.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Document {
    /// Position.
    pub(crate) place: Place,
    /// `apps/v1`.
    pub(crate) api_version: String,
    /// `StatefulSet`.
    pub(crate) kind: String,
    /// Name, or the prefix that the server completes.
    pub(crate) name: String,
    /// Namespace, if set.
    pub(crate) namespace: Option<String>,
    /// The whole object.
    pub(crate) value: Value,
}

/// Position of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// File name as given.
    pub(crate) file: String,
    /// First line of its document, from 1.
    pub(crate) line: usize,
    /// Number of its document in the file, from 1; empty ones are not counted.
    pub(crate) document: usize,
}

/// Error in a manifest, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem(String);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Problem {}

impl Document {
    /// Creates an error of a field (empty: of the whole object).
    pub(crate) fn problem(&self, field: &str, reason: &str) -> Problem {
        let namespace = self
            .namespace
            .as_ref()
            .map_or_else(String::new, |name| format!("{name}/"));
        let object = format!("{} {namespace}{}", self.kind, self.name);
        self.place.problem(&object, field, reason)
    }
}

impl Place {
    fn problem(&self, object: &str, field: &str, reason: &str) -> Problem {
        let object = if object.is_empty() {
            String::new()
        } else {
            format!(", {object}")
        };
        let field = if field.is_empty() {
            String::new()
        } else {
            format!("{field}: ")
        };
        Problem(one_line(&format!(
            "{}:{}: document {}{object}: {field}{reason}",
            self.file, self.line, self.document
        )))
    }
}

/// Joins the lines of a text.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Parses every object of a file; a `List` is replaced by its items.
pub(crate) fn parse(file: &str, text: &str) -> Result<Vec<Document>, Problem> {
    let mut documents = Vec::new();
    let mut count = 0;
    for (first_line, part) in split(text.trim_start_matches('\u{feff}')) {
        let value: Value = serde_saphyr::from_str_with_options(&part, yaml_options())
            .map_err(|error| syntax_problem(file, first_line, &error))?;
        if value.is_null() {
            continue;
        }
        count += 1;
        let blank = part.lines().take_while(|line| is_blank(line)).count();
        let place = Place {
            file: file.to_owned(),
            line: first_line + blank,
            document: count,
        };
        collect(&place, value, &mut documents)?;
    }
    if documents.is_empty() {
        return Err(Problem(format!("{file}: holds no object")));
    }
    Ok(documents)
}

/// Parser options of kubectl: `0755` is octal, duplicate keys are errors.
fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! { legacy_octal_numbers: true, with_snippet: false }
}

fn syntax_problem(file: &str, first_line: usize, error: &serde_saphyr::Error) -> Problem {
    let place = error.location().map_or_else(
        || format!("{first_line}"),
        |at| {
            let line = usize::try_from(at.line()).unwrap_or(1) + first_line - 1;
            format!("{line}:{}", at.column())
        },
    );
    let text = error.without_snippet().to_string();
    // The parser repeats the position, relative to the document.
    let text = text.split(" at line ").next().unwrap_or_default();
    Problem(one_line(&format!("{file}:{place}: not valid YAML: {text}")))
}

/// Splits at lines that begin with `---`, as kubectl does. Returns each part with the number of its
/// first line.
fn split(text: &str) -> Vec<(usize, String)> {
    let mut parts = vec![(1, String::new())];
    for (index, line) in text.lines().enumerate() {
        let separator = line
            .strip_prefix("---")
            .filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r']));
        if let Some(rest) = separator {
            parts.push((index + 1, format!("{rest}\n")));
        } else if let Some((_, part)) = parts.last_mut() {
            part.push_str(line);
            part.push('\n');
        }
    }
    parts
}

fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

/// Adds the object, or the items of a list, after checking the required fields.
fn collect(place: &Place, value: Value, documents: &mut Vec<Document>) -> Result<(), Problem> {
    if !value.is_object() {
        return Err(place.problem(
            "",
            "",
            "expected an object with apiVersion, kind and metadata",
        ));
    }
    let kind = text(place, &value, "/kind", "kind")?;
    let api_version = text(place, &value, "/apiVersion", "apiVersion")?;
    if kind == "List" && api_version == "v1" {
        let items = value.get("items").and_then(Value::as_array).cloned();
        let items = items.ok_or_else(|| place.problem("List", "items", "expected a list"))?;
        return items
            .into_iter()
            .try_for_each(|item| collect(place, item, documents));
    }
    let name = match value.pointer("/metadata/generateName") {
        Some(Value::String(prefix)) if value.pointer("/metadata/name").is_none() => prefix.clone(),
        _ => text(place, &value, "/metadata/name", "metadata.name")?,
    };
    let namespace = match value.pointer("/metadata/namespace") {
        None | Some(Value::Null) => None,
        Some(_) => Some(text(
            place,
            &value,
            "/metadata/namespace",
            "metadata.namespace",
        )?),
    };
    documents.push(Document {
        place: place.clone(),
        api_version,
        kind,
        name,
        namespace,
        value,
    });
    Ok(())
}

/// The non-empty string at `pointer`.
fn text(place: &Place, value: &Value, pointer: &str, field: &str) -> Result<String, Problem> {
    let named = |pointer: &str| {
        value
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let object = format!("{} {}", named("/kind"), named("/metadata/name"));
    match value.pointer(pointer) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        None | Some(Value::Null | Value::String(_)) => {
            Err(place.problem(object.trim(), field, "Required value"))
        }
        Some(_) => Err(place.problem(object.trim(), field, "expected a string")),
    }
}

#[cfg(test)]
mod tests;
