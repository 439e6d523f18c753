//! Checks of the rules in a schema.
//!
//! Upstream: `ValidateCustomResourceDefinitionOpenAPISchema`

use serde_json::{Value, json};

use super::internal;
use super::place::Place;
use super::structural;
use crate::cel::{Checked, Kind, Program, Shape};
use crate::custom::{Rule, Schema, field_path, shape};
use crate::members::{list, text};
use crate::status::FieldError;

/// The reasons that a rule can give.
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// The largest cost of an expression, and of all expressions of a schema.
const COST_MAX: u64 = 10_000_000;
const TOTAL_MAX: u64 = 100_000_000;

/// The number of expressions that an error about the total names.
const NAMED: usize = 4;

/// Errors, and the costs of all expressions.
#[derive(Default)]
pub(super) struct Report {
    errors: Vec<FieldError>,
    total: u64,
    /// The most expensive expressions with their paths.
    expensive: Vec<(u64, String)>,
}

impl Report {
    /// Checks the rules of a schema, which is otherwise valid.
    pub(super) fn check(&mut self, value: &Value, place: &Place<'_>) {
        let schema = Schema::read(value);
        if schema.rules.is_empty() {
            return;
        }
        let at = format!("{}.x-kubernetes-validations", place.at);
        let Some(shape) = shape(&schema, place.is_resource()) else {
            let detail = "internal error: failed to construct type information for \
                          x-kubernetes-validations rules: unable to convert structural schema to CEL \
                          declarations";
            self.errors.push(FieldError::internal(at, detail));
            return;
        };
        for (index, rule) in schema.rules.iter().enumerate() {
            check_rule(rule, &shape, &format!("{at}[{index}]"), place, self);
        }
    }

    /// Returns the errors. `at` is the path of the version's schema.
    pub(super) fn into_errors(mut self, at: &str) -> Vec<FieldError> {
        if self.total > TOTAL_MAX {
            let detail = "contributed to estimated rule cost total exceeding cost limit for entire \
                          OpenAPIv3 schema";
            for (_, path) in self.expensive {
                self.errors.push(FieldError::forbidden(path, detail));
            }
            let name =
                "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
            let detail = too_expensive(name, self.total, TOTAL_MAX);
            self.errors.push(FieldError::forbidden(at, &detail));
        }
        self.errors
    }

    /// Counts the cost of an expression, and reports one that costs too much.
    fn note(&mut self, checked: &Checked, most: u64, name: &str, field: &str) {
        let cost = checked.cost.saturating_mul(most);
        if cost > COST_MAX {
            let detail = too_expensive(&format!("estimated {name} cost"), cost, COST_MAX);
            self.errors.push(FieldError::forbidden(field, &detail));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= TOTAL_MAX / 100 {
            self.expensive.push((cost, field.to_owned()));
            self.expensive
                .sort_by(|(one, _), (other, _)| other.cmp(one));
            self.expensive.truncate(NAMED);
        }
    }
}

/// Checks the rules of a schema without their expressions.
pub(super) fn check_texts(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    for (index, rule) in list(schema, "x-kubernetes-validations").enumerate() {
        let at = format!("{at}.x-kubernetes-validations[{index}]");
        rule_texts(rule, schema, &at, errors);
    }
}

fn rule_texts(rule: &Value, schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let has_breaks = |text: &str| text.contains(['\n', '\r']);
    let (source, message) = (text(rule, "rule").trim(), text(rule, "message"));
    let field = format!("{at}.message");
    if source.is_empty() {
        let detail = "rule is not specified";
        errors.push(FieldError::required(format!("{at}.rule"), detail));
    } else if !message.is_empty() && message.trim().is_empty() {
        let detail = "must be non-empty if specified";
        errors.push(FieldError::invalid(field, &json!(message), detail));
    } else if has_breaks(message.trim()) {
        let detail = "must not contain line breaks";
        errors.push(FieldError::invalid(field, &json!(message), detail));
    } else if has_breaks(source) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(field, detail));
    }
    let expression = text(rule, "messageExpression");
    if !expression.is_empty() && expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(
            format!("{at}.messageExpression"),
            detail,
        ));
    }
    if let Some(reason) = rule
        .get("reason")
        .filter(|it| !REASONS.iter().any(|name| *it == name))
    {
        errors.push(FieldError::not_supported(
            format!("{at}.reason"),
            reason,
            &REASONS,
        ));
    }
    let path = text(rule, "fieldPath");
    let mut wrong = |detail: &str| {
        errors.push(FieldError::invalid(
            format!("{at}.fieldPath"),
            &json!(path),
            detail,
        ));
    };
    if path.is_empty() {
        return;
    }
    if path.trim().is_empty() {
        wrong("must be non-empty if specified");
    }
    if has_breaks(path) {
        wrong("must not contain line breaks");
    }
    if structural::is_readable(schema) && field_path(path, &Schema::read(schema), true).is_err() {
        wrong("must be a valid path");
    }
}

/// Checks the expressions of a rule.
fn check_rule(rule: &Rule, shape: &Shape, at: &str, place: &Place<'_>, report: &mut Report) {
    let is_optional = rule.optional_old == Some(true);
    let most = place.most.unwrap_or_else(|| shape.most_in_request());
    let checked = Program::parse(&rule.source)
        .map_err(|text| format!("compilation failed: {text}"))
        .and_then(|program| {
            let checked = program.check(shape, is_optional);
            let checked = checked.map_err(|text| format!("compilation failed: {text}"))?;
            if checked.kind != Kind::Bool {
                return Err("cel expression must evaluate to a bool".to_owned());
            }
            let instantiated = program.instantiate();
            instantiated.map_err(|text| format!("program instantiation failed: {text}"))?;
            Ok((program, checked))
        });
    let field = format!("{at}.rule");
    let reads_old = match checked {
        Ok((program, checked)) => {
            report.note(&checked, most, "rule", &field);
            program.reads_old()
        }
        Err(detail) => {
            let shown = shown(rule);
            let error = FieldError::invalid_text(&field, &shown, &detail);
            report.errors.push(error);
            report.errors.extend(unused_old(rule, at));
            return;
        }
    };
    check_message(rule, shape, &format!("{at}.messageExpression"), report);
    if reads_old && let Some(list) = place.unmatched {
        let detail = format!(
            "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
        );
        let error = FieldError::invalid(field, &json!(rule.source), &detail);
        report.errors.push(error);
    } else if !reads_old {
        report.errors.extend(unused_old(rule, at));
    }
}

/// Returns the error of a rule that makes an old value optional that it doesn't read.
fn unused_old(rule: &Rule, at: &str) -> Option<FieldError> {
    let field = format!("{at}.optionalOldSelf");
    let detail = "may not be set if oldSelf is not used in rule";
    let found = json!(rule.optional_old?);
    Some(FieldError::invalid(field, &found, detail))
}

/// Checks the expression of a message, which upstream counts once wherever it stands.
fn check_message(rule: &Rule, shape: &Shape, field: &str, report: &mut Report) {
    if rule.message_expression.is_empty() {
        return;
    }
    let is_optional = rule.optional_old == Some(true);
    let checked = Program::parse(&rule.message_expression)
        .and_then(|program| Ok((program.check(shape, is_optional)?, program)))
        .map_err(|text| format!("messageExpression compilation failed: {text}"))
        .and_then(|(checked, program)| {
            if checked.kind != Kind::Text {
                return Err("messageExpression must evaluate to a string".to_owned());
            }
            let instantiated = program.instantiate();
            let failed = "messageExpression instantiation failed";
            instantiated.map_err(|text| format!("{failed}: {text}"))?;
            Ok(checked)
        });
    match checked {
        Ok(checked) => report.note(&checked, 1, "messageExpression", field),
        Err(detail) => {
            let error = FieldError::invalid_text(field, &shown(rule), &detail);
            report.errors.push(error);
        }
    }
}

/// Upstream: `getCostErrorMessage`
#[expect(
    clippy::cast_precision_loss,
    reason = "the factor is shown with one digit"
)]
fn too_expensive(name: &str, cost: u64, max: u64) -> String {
    let factor = cost as f64 / max as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, \
         maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// Returns the text of a rule in errors.
fn shown(rule: &Rule) -> String {
    internal::rule(&json!({
        "rule": rule.source,
        "message": rule.message,
        "messageExpression": rule.message_expression,
        "reason": rule.reason,
        "fieldPath": rule.field_path,
        "optionalOldSelf": rule.optional_old,
    }))
}
