//! Rules of labels and label selectors.

use serde_json::{Value, json};

use super::{FieldError, names};

/// Upstream: `ValidateLabels`.
pub(super) fn labels(found: Option<&Value>, field: &str, errors: &mut Vec<FieldError>) {
    let found = found.and_then(Value::as_object);
    for (key, value) in found.into_iter().flatten() {
        label_name(key, field, errors);
        for message in names::label_value(value.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid(field, value, message));
        }
    }
}

/// Upstream: `ValidateLabelSelector`.
pub(super) fn validate(selector: &Value, field: &str, errors: &mut Vec<FieldError>) {
    let map = selector.get("matchLabels");
    labels(map, &format!("{field}.matchLabels"), errors);
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for (i, expression) in expressions.into_iter().flatten().enumerate() {
        let path = format!("{field}.matchExpressions[{i}]");
        requirement(expression, &path, errors);
    }
}

/// Upstream: `ValidateLabelSelectorRequirement`.
fn requirement(expression: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let text = |member: &str| {
        let text = expression.get(member).and_then(Value::as_str);
        text.unwrap_or_default()
    };
    let values = expression.get("values").and_then(Value::as_array);
    let values = values.map_or(&[][..], Vec::as_slice);
    match text("operator") {
        "In" | "NotIn" => {
            if values.is_empty() {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(format!("{path}.values"), detail));
            }
        }
        "Exists" | "DoesNotExist" => {
            if !values.is_empty() {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(format!("{path}.values"), detail));
            }
        }
        other => {
            let detail = "not a valid selector operator";
            errors.push(FieldError::invalid(
                format!("{path}.operator"),
                &json!(other),
                detail,
            ));
        }
    }
    label_name(text("key"), &format!("{path}.key"), errors);
    for (i, value) in values.iter().enumerate() {
        for message in names::label_value(value.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid(
                format!("{path}.values[{i}]"),
                value,
                message,
            ));
        }
    }
}

/// Upstream: `ValidateLabelName`.
pub(super) fn label_name(name: &str, field: &str, errors: &mut Vec<FieldError>) {
    for message in names::qualified_name(name) {
        errors.push(FieldError::invalid(field, &json!(name), &message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirement_values_must_match_the_operator() {
        let selector = json!({
            "matchLabels": {"a": "b c"},
            "matchExpressions": [
                {"key": "a", "operator": "In"},
                {"key": "a", "operator": "Exists", "values": ["x"]},
                {"key": "", "operator": "X", "values": ["-"]},
                {"key": "a", "operator": "NotIn", "values": ["x"]},
            ],
        });
        let mut errors = Vec::new();
        validate(&selector, "spec.selector", &mut errors);
        let fields: Vec<&str> = errors
            .iter()
            .filter_map(|error| error.field.strip_prefix("spec.selector."))
            .collect();
        assert_eq!(
            fields,
            [
                "matchLabels",
                "matchExpressions[0].values",
                "matchExpressions[1].values",
                "matchExpressions[2].operator",
                "matchExpressions[2].key",
                "matchExpressions[2].key",
                "matchExpressions[2].values[0]",
            ]
        );
    }
}
