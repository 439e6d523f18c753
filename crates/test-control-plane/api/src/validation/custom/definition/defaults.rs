//! Validation of defaults in a schema.
//!
//! Upstream: `ValidateDefaults`

use serde_json::{Map, Value, json};

use crate::custom::{Schema, prune};
use crate::status::FieldError;
use crate::validation::custom::resource::{errors_of_default, errors_of_embedded};

/// The place of a schema.
#[derive(Clone)]
struct Place {
    at: String,
    /// The path to it from the object around it; `None` outside of its type and metadata.
    in_metadata: Option<Vec<Step>>,
}

#[derive(Clone)]
enum Step {
    Member(String),
    Item,
}

/// Returns the errors of all defaults.
pub(super) fn errors(schema: &Value, at: &str) -> Vec<FieldError> {
    let mut schema = Schema::read(schema);
    schema.embedded = true;
    let mut errors = Vec::new();
    let place = Place {
        at: at.to_owned(),
        in_metadata: None,
    };
    walk(&schema, &place, &mut errors);
    errors
}

fn is_pruned(schema: &Schema, default: &Value) -> bool {
    prune(schema, &mut default.clone(), schema.embedded).is_empty()
}

fn walk(schema: &Schema, place: &Place, errors: &mut Vec<FieldError>) {
    let in_metadata = place.in_metadata.as_ref().filter(|_| !schema.embedded);
    if let Some(default) = schema.default.as_ref().filter(|default| !default.is_null()) {
        let field = format!("{}.default", place.at);
        if in_metadata.is_none() && !is_pruned(schema, default) {
            let detail = "must not have unknown fields";
            errors.push(FieldError::invalid(&field, default, detail));
        }
        let of_metadata = match in_metadata {
            None => errors_of_embedded(schema, default, &field),
            Some(steps) => {
                let resource = Schema {
                    embedded: true,
                    ..Schema::default()
                };
                let wrong = aggregate(&errors_of_embedded(&resource, &around(steps, default), ""));
                let detail = wrong.map(|wrong| format!("must result in valid metadata: {wrong}"));
                let error = detail.map(|detail| FieldError::invalid(&field, default, &detail));
                error.into_iter().collect()
            }
        };
        if of_metadata.is_empty() {
            errors.extend(errors_of_default(schema, default, &field));
        } else {
            errors.extend(of_metadata);
        }
    }
    if let Some(items) = &schema.items {
        let inside = Place {
            at: format!("{}.items", place.at),
            in_metadata: in_metadata.map(|steps| [steps.as_slice(), &[Step::Item]].concat()),
        };
        walk(items, &inside, errors);
    }
    for (name, property) in &schema.properties {
        let step = [Step::Member(name.clone())];
        let begins = schema.embedded && ["apiVersion", "kind", "metadata"].contains(&&**name);
        let inside = Place {
            at: format!("{}.properties[{name}]", place.at),
            in_metadata: match in_metadata {
                Some(steps) => Some([steps.as_slice(), &step].concat()),
                None => begins.then(|| step.to_vec()),
            },
        };
        walk(property, &inside, errors);
    }
}

/// Returns an object with a value at a path.
///
/// Upstream: `SurroundingObjectFunc`
fn around(steps: &[Step], value: &Value) -> Value {
    let inside = steps
        .iter()
        .rev()
        .fold(value.clone(), |value, step| match step {
            Step::Item => json!([value]),
            Step::Member(name) => Value::Object(Map::from_iter([(name.clone(), value)])),
        });
    let mut object = json!({"kind": "Validation", "apiVersion": "validation/v1"});
    if let (Value::Object(members), Value::Object(inside)) = (&mut object, inside) {
        members.extend(inside);
    }
    object
}

/// Returns the text of several errors.
///
/// Upstream: `ToAggregate`
fn aggregate(errors: &[FieldError]) -> Option<String> {
    let mut shown: Vec<String> = Vec::new();
    for error in errors {
        let text = format!("{}: {}", error.field, error.message);
        if !shown.contains(&text) {
            shown.push(text);
        }
    }
    match shown.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}
