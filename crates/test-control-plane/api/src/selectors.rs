//! Label and field selectors of lists and watches.

pub mod shards;

use std::sync::Arc;

use kube_apimachinery::selector::Selector;
use serde_json::Value;

use crate::kinds::{Kind, Trait};
use crate::members::text;
use crate::object::{Object, field_text};
use crate::query::Query;
use crate::status::{ApiError, ApiResult};
use shards::ShardSelector;

/// The selectors of a list or watch.
#[derive(Clone, Debug)]
pub struct Selection {
    labels: Selector,
    fields: Vec<FieldTerm>,
    shards: Option<ShardSelector>,
}

#[derive(Clone, Debug)]
struct FieldTerm {
    field: Field,
    value: String,
    equal: bool,
}

#[derive(Clone, Debug)]
enum Field {
    Name,
    Namespace,
    /// The index in the kind's list.
    Of(usize),
    /// A field of a custom resource in the version of this row. Stored objects have no list of
    /// such values, because definitions change.
    Custom(Arc<Kind>, usize),
}

impl Selection {
    /// Parses `labelSelector` and `fieldSelector`.
    ///
    /// # Errors
    ///
    /// 400 for bad syntax and for fields that the kind doesn't support.
    pub fn parse(kind: &Arc<Kind>, query: &Query) -> ApiResult<Self> {
        let labels = Selector::parse(query.get("labelSelector").unwrap_or_default())
            .map_err(|err| ApiError::bad_request(err.to_string()))?;
        let fields = parse_fields(kind, query.get("fieldSelector").unwrap_or_default())?;
        Ok(Self {
            labels,
            fields,
            shards: None,
        })
    }

    /// Restricts the selection by the parameter `shardSelector`.
    ///
    /// # Errors
    ///
    /// 500 for bad syntax.
    pub fn sharded(mut self, query: &Query) -> ApiResult<Self> {
        let text = query.get("shardSelector").filter(|text| !text.is_empty());
        self.shards = text.map(ShardSelector::parse).transpose()?;
        Ok(self)
    }

    /// Returns the shard selector as lists report it.
    pub fn shard_selector(&self) -> Option<String> {
        self.shards.as_ref().map(ShardSelector::to_string)
    }

    /// Restricts the selection to the object of this name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        if !name.is_empty() {
            self.fields.push(FieldTerm {
                field: Field::Name,
                value: name.to_owned(),
                equal: true,
            });
        }
        self
    }

    /// Returns true if the selection matches all objects.
    pub fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty() && self.shards.is_none()
    }

    /// Returns true if the object matches.
    pub fn matches(&self, object: &Object) -> bool {
        let in_shard = |shards: &ShardSelector| shards.matches(object);
        self.shards.as_ref().is_none_or(in_shard)
            && self.fields.iter().all(|term| {
                let is_selected = |value: &str| (value == term.value) == term.equal;
                match &term.field {
                    Field::Name => is_selected(&object.key.name),
                    Field::Namespace => is_selected(&object.key.namespace),
                    Field::Of(index) => {
                        is_selected(object.fields.get(*index).map_or("", |value| value))
                    }
                    // No selection calls webhooks.
                    Field::Custom(kind, field) => {
                        custom_field(kind, *field, object).is_none_or(|value| is_selected(&value))
                    }
                }
            })
            && self.labels.matches(&object.labels)
    }
}

/// Returns the value of a custom resource's selectable field; `None` if only a webhook can convert the
/// object to the version.
fn custom_field(kind: &Kind, field: usize, object: &Object) -> Option<String> {
    let field = kind.fields.get(field)?;
    let custom = kind.custom.as_ref()?;
    let mut value = object.value();
    let version = kind.api_version();
    if custom.conversion_webhook().is_some() && text(&value, "apiVersion") != version {
        return None;
    }
    custom.default_stored(&version, &mut value);
    custom.coerce_served(&version, &mut value);
    Some(field_text(field, &value))
}

fn parse_fields(kind: &Arc<Kind>, text: &str) -> ApiResult<Vec<FieldTerm>> {
    let mut terms = Vec::new();
    for term in split(text).filter(|term| !term.is_empty()) {
        let (label, value, equal) = split_term(term).ok_or_else(|| {
            ApiError::bad_request(format!(
                "invalid selector: '{text}'; can't understand '{term}'"
            ))
        })?;
        let value = unescape(value).map_err(ApiError::bad_request)?;
        terms.push((label, value, equal));
    }
    let known = |label: &str| match label {
        "metadata.name" => Some(Field::Name),
        "metadata.namespace" if kind.custom.is_none() || kind.namespaced => Some(Field::Namespace),
        _ => {
            let found = kind.fields.iter().position(|field| field.label == label);
            found.map(|index| match kind.custom {
                Some(_) => Field::Custom(Arc::clone(kind), index),
                None => Field::Of(index),
            })
        }
    };
    terms
        .into_iter()
        .map(|(label, value, equal)| {
            let field = known(label).ok_or_else(|| unknown_field(kind, label))?;
            Ok(FieldTerm {
                field,
                value,
                equal,
            })
        })
        .collect()
}

/// Splits the text at unescaped commas.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    text.split(move |c| {
        let is_end = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        is_end
    })
}

/// Splits a term at its first operator: label, value, and true for equality.
fn split_term(term: &str) -> Option<(&str, &str, bool)> {
    term.char_indices().find_map(|(at, _)| {
        let (label, rest) = term.split_at(at);
        [("!=", false), ("==", true), ("=", true)]
            .iter()
            .find_map(|(operator, equal)| Some((label, rest.strip_prefix(operator)?, *equal)))
    })
}

/// Removes the backslashes that escape commas, equal signs and backslashes.
fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                other => {
                    let sequence: String = ['\\'].into_iter().chain(other).collect();
                    return Err(format!(
                        "invalid field selector: invalid escape sequence: {sequence}"
                    ));
                }
            },
            ',' | '=' => {
                return Err(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                ));
            }
            other => out.push(other),
        }
    }
    Ok(out)
}

fn unknown_field(kind: &Kind, label: &str) -> ApiError {
    ApiError::bad_request(if &*kind.storage == "resourceslices" {
        let (version, kind) = (kind.api_version(), &kind.kind);
        format!("field label not supported for {version}, Kind={kind}: {label}")
    } else if kind.has(Trait::OwnFieldLabels) {
        format!("field label not supported: {label}")
    } else {
        format!(
            "{label:?} is not a known field selector: only \"metadata.name\", \
             \"metadata.namespace\""
        )
    })
}

/// Formats a label selector as a query parameter.
pub fn selector_text(selector: Option<&Value>) -> String {
    let Some(selector) = selector else {
        return String::new();
    };
    let mut terms: Vec<String> = Vec::new();
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    for (key, value) in labels.into_iter().flatten() {
        terms.push(format!("{key}={}", value.as_str().unwrap_or_default()));
    }
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for expression in expressions.into_iter().flatten() {
        let key = expression
            .get("key")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let values: Vec<&str> = expression
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let values = values.join(",");
        terms.push(match expression.get("operator").and_then(Value::as_str) {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("Exists") => key.to_owned(),
            _ => format!("!{key}"),
        });
    }
    terms.sort();
    terms.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn field_selectors_are_unescaped() {
        let pods = kinds::by_resource("", "v1", "pods").unwrap();
        let terms = |text: &str| {
            let terms = parse_fields(pods, text).map_err(|err| err.message)?;
            Ok::<_, String>(
                terms
                    .into_iter()
                    .map(|t| (t.value, t.equal))
                    .collect::<Vec<_>>(),
            )
        };
        let expected = vec![("a,b=c".to_owned(), true), (String::new(), false)];
        assert_eq!(
            terms("metadata.name==a\\,b\\=c,spec.nodeName!=,"),
            Ok(expected)
        );
        for (text, message) in [
            ("bad", "invalid selector: 'bad'; can't understand 'bad'"),
            (
                "metadata.name=a=b",
                "invalid field selector: unescaped character in value: 61",
            ),
            (
                "metadata.name=a\\b",
                "invalid field selector: invalid escape sequence: \\b",
            ),
            ("spec.x=a", "field label not supported: spec.x"),
        ] {
            assert_eq!(terms(text), Err(message.to_owned()));
        }
    }
}
