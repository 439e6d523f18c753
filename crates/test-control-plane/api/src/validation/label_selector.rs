//! Rules of labels.

use super::names;
use super::place::{Errors, Place};
use crate::status::FieldError;

/// Upstream: `ValidateLabels`.
pub(super) fn labels(labels: &Place<'_>, errors: &mut Errors) {
    for (key, value) in labels.value.as_object().into_iter().flatten() {
        let invalid = |value: &_, why: &str| FieldError::invalid(labels.path(), value, why);
        let name = names::qualified_name(key);
        errors.extend(name.iter().map(|why| invalid(&key.as_str().into(), why)));
        let text = names::label_value(value.as_str().unwrap_or_default());
        errors.extend(text.iter().map(|why| invalid(value, why)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::rules;

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
        let place = Place::new(&selector, "spec.selector");
        rules::check("LabelSelector", &place, &mut errors);
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
