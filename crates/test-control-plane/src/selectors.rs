//! Label and field selectors of lists and watches.

use kube_apimachinery::selector::Selector;

use crate::kinds::{Kind, Trait};
use crate::object::Object;
use crate::query::Query;
use crate::status::{ApiError, ApiResult};

/// What a list or watch selects.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    labels: Selector,
    fields: Vec<FieldTerm>,
}

#[derive(Clone, Debug)]
struct FieldTerm {
    field: Field,
    value: String,
    equal: bool,
}

#[derive(Clone, Copy, Debug)]
enum Field {
    Name,
    Namespace,
    /// The position in the kind's list.
    Of(usize),
}

impl Selection {
    /// Reads `labelSelector` and `fieldSelector`.
    ///
    /// # Errors
    ///
    /// 400 for bad syntax and for fields that the kind can't be selected by.
    pub(crate) fn parse(kind: &Kind, query: &Query) -> ApiResult<Self> {
        let labels = Selector::parse(query.get("labelSelector").unwrap_or_default())
            .map_err(|err| ApiError::bad_request(parse_message(&err.to_string())))?;
        let fields = parse_fields(kind, query.get("fieldSelector").unwrap_or_default())?;
        Ok(Self { labels, fields })
    }

    /// Only the object of the name, if there is one, among those selected.
    pub(crate) fn named(mut self, name: &str) -> Self {
        if !name.is_empty() {
            self.fields.push(FieldTerm {
                field: Field::Name,
                value: name.to_owned(),
                equal: true,
            });
        }
        self
    }

    /// Whether nothing is selected away.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether the object is selected.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.fields.iter().all(|term| {
            let value: &str = match term.field {
                Field::Name => &object.key.name,
                Field::Namespace => &object.key.namespace,
                Field::Of(index) => object.fields.get(index).map_or("", |value| value),
            };
            (value == term.value) == term.equal
        }) && self.labels.matches(&object.labels)
    }
}

/// The parser's message; what is wrong between requirements is said without their prefix.
fn parse_message(message: &str) -> String {
    match message.strip_prefix("unable to parse requirement: ") {
        Some(rest) if rest.ends_with("identifier after ','") => rest.to_owned(),
        _ => message.replace(", expected: '('", " expected: '('"),
    }
}

fn parse_fields(kind: &Kind, text: &str) -> ApiResult<Vec<FieldTerm>> {
    let mut terms = Vec::new();
    for term in text.split(',').filter(|term| !term.is_empty()) {
        let (label, value, equal) = split_term(term).ok_or_else(|| {
            ApiError::bad_request(format!(
                "invalid selector: '{text}'; can't understand '{term}'"
            ))
        })?;
        let field = match label {
            "metadata.name" => Field::Name,
            "metadata.namespace" => Field::Namespace,
            _ => kind
                .fields
                .iter()
                .position(|(known, _)| *known == label)
                .map(Field::Of)
                .ok_or_else(|| unknown_field(kind, label))?,
        };
        terms.push(FieldTerm {
            field,
            value: value.to_owned(),
            equal,
        });
    }
    Ok(terms)
}

fn split_term(term: &str) -> Option<(&str, &str, bool)> {
    let at = term.find(['=', '!'])?;
    let (label, rest) = term.split_at(at);
    for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
        if let Some(value) = rest.strip_prefix(operator) {
            return Some((label, value, equal));
        }
    }
    None
}

fn unknown_field(kind: &Kind, label: &str) -> ApiError {
    ApiError::bad_request(if kind.has(Trait::OwnFieldLabels) {
        format!("field label not supported: {label}")
    } else {
        format!(
            "{label:?} is not a known field selector: only \"metadata.name\", \
             \"metadata.namespace\""
        )
    })
}
