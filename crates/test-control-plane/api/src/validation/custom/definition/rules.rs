//! Checks of the rules in a schema.
//!
//! Upstream: `ValidateCustomResourceDefinitionOpenAPISchema`

use serde_json::{Value, json};

use super::internal;
use super::structural::inner::each_inner;
use crate::cel::{Checked, Kind, Program, Shape};
use crate::custom::{ListType, Rule, Schema, field_path, shape};
use crate::status::FieldError;

/// The largest cost of an expression, and of all expressions of a schema.
const COST_MAX: u64 = 10_000_000;
const TOTAL_MAX: u64 = 100_000_000;

/// The number of expressions that an error about the total names.
const NAMED: usize = 4;

/// The reasons that a rule can give.
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// The place of a schema among those around it.
#[derive(Clone, Copy)]
struct Around<'a> {
    is_root: bool,
    /// The largest number of its values in an object; `None` if that is not limited.
    most: Option<u64>,
    /// The path of the list around it whose elements have no identity.
    unmatched: Option<&'a str>,
}

/// Errors, and the costs of all expressions.
#[derive(Default)]
struct Report {
    of_schemas: Vec<FieldError>,
    of_rules: Vec<FieldError>,
    total: u64,
    /// The most expensive expressions with their paths.
    expensive: Vec<(u64, String)>,
}

/// Checks all rules of a version's schema, which is otherwise valid.
pub(super) fn check(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let mut report = Report::default();
    let around = Around {
        is_root: true,
        most: Some(1),
        unmatched: None,
    };
    visit(schema, at, around, &mut report);
    errors.append(&mut report.of_schemas);
    errors.append(&mut report.of_rules);
    if report.total > TOTAL_MAX {
        let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 \
             schema";
        for (_, path) in report.expensive {
            errors.push(FieldError::forbidden(path, detail));
        }
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let detail = too_expensive(name, report.total, TOTAL_MAX);
        errors.push(FieldError::forbidden(at, &detail));
    }
}

/// Checks the schemas inside of a schema, then its own rules.
fn visit(value: &Value, at: &str, around: Around<'_>, report: &mut Report) {
    let schema = Schema::read(value);
    let before = report.of_schemas.len();
    let times = |max: Option<i64>| {
        let max = u64::try_from(max?).unwrap_or(0);
        Some(around.most?.saturating_mul(max))
    };
    each_inner(value, at, &mut |inner, path| {
        let part = path.strip_prefix(at).unwrap_or_default();
        let most = match part {
            ".items" => times(schema.checks.max_items),
            ".additionalProperties" => times(schema.checks.max_properties),
            _ => around.most,
        };
        let is_unmatched = part == ".items" && schema.list_type != ListType::Map;
        let around = Around {
            is_root: inner.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)),
            most,
            unmatched: around.unmatched.or(is_unmatched.then_some(at)),
        };
        visit(inner, path, around, report);
    });
    for (index, rule) in schema.rules.iter().enumerate() {
        let at = format!("{at}.x-kubernetes-validations[{index}]");
        check_texts(rule, &schema, &at, &mut report.of_schemas);
    }
    if schema.rules.is_empty() || report.of_schemas.len() > before {
        return;
    }
    let Some(shape) = shape(&schema, around.is_root) else {
        return;
    };
    for (index, rule) in schema.rules.iter().enumerate() {
        let at = format!("{at}.x-kubernetes-validations[{index}]");
        check_rule(rule, &shape, &at, around, report);
    }
}

/// Checks a rule without its expressions.
fn check_texts(rule: &Rule, schema: &Schema, at: &str, errors: &mut Vec<FieldError>) {
    let has_breaks = |text: &str| text.contains(['\n', '\r']);
    let (source, message) = (rule.source.trim(), rule.message.trim());
    if source.is_empty() {
        let field = format!("{at}.rule");
        errors.push(FieldError::required(field, "rule is not specified"));
    }
    let field = format!("{at}.message");
    if !rule.message.is_empty() && message.is_empty() {
        let detail = "must be non-empty if specified";
        errors.push(FieldError::invalid(field, &json!(rule.message), detail));
    } else if has_breaks(message) {
        let detail = "must not contain line breaks";
        errors.push(FieldError::invalid(field, &json!(rule.message), detail));
    } else if has_breaks(source) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(field, detail));
    }
    if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
        let field = format!("{at}.messageExpression");
        let detail = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(field, detail));
    }
    let reason = rule.reason.as_deref();
    if let Some(reason) = reason.filter(|reason| !REASONS.contains(reason)) {
        let field = format!("{at}.reason");
        errors.push(FieldError::not_supported(field, &json!(reason), &REASONS));
    }
    check_path(&rule.field_path, schema, &format!("{at}.fieldPath"), errors);
}

fn check_path(path: &str, schema: &Schema, field: &str, errors: &mut Vec<FieldError>) {
    if path.is_empty() {
        return;
    }
    let detail = if path.trim().is_empty() {
        "must be non-empty if specified"
    } else if path.contains(['\n', '\r']) {
        "must not contain line breaks"
    } else if field_path(path, schema).is_none() {
        "must be a valid path"
    } else {
        return;
    };
    errors.push(FieldError::invalid(field, &json!(path), detail));
}

/// Checks the expressions of a rule.
fn check_rule(rule: &Rule, shape: &Shape, at: &str, around: Around<'_>, report: &mut Report) {
    let is_optional = rule.optional_old == Some(true);
    let most = around.most.unwrap_or_else(|| shape.most_in_request());
    let checked = Program::parse(&rule.source)
        .map_err(|text| format!("compilation failed: {text}"))
        .and_then(|program| {
            let checked = program.check(shape, is_optional);
            let checked = checked.map_err(|text| format!("compilation failed: {text}"))?;
            if checked.kind != Kind::Bool {
                return Err("cel expression must evaluate to a bool".to_owned());
            }
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
            report.of_rules.push(error);
            return;
        }
    };
    check_message(
        rule,
        shape,
        &format!("{at}.messageExpression"),
        most,
        report,
    );
    if reads_old && let Some(list) = around.unmatched {
        let detail = format!(
            "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
        );
        let error = FieldError::invalid(field, &json!(rule.source), &detail);
        report.of_rules.push(error);
    } else if let Some(found) = rule.optional_old.filter(|_| !reads_old) {
        let field = format!("{at}.optionalOldSelf");
        let detail = "may not be set if oldSelf is not used in rule";
        let error = FieldError::invalid(field, &json!(found), detail);
        report.of_rules.push(error);
    }
}

fn check_message(rule: &Rule, shape: &Shape, field: &str, most: u64, report: &mut Report) {
    if rule.message_expression.is_empty() {
        return;
    }
    let is_optional = rule.optional_old == Some(true);
    let checked = Program::parse(&rule.message_expression)
        .and_then(|program| program.check(shape, is_optional))
        .map_err(|text| format!("messageExpression compilation failed: {text}"))
        .and_then(|checked| {
            let is_text = checked.kind == Kind::Text;
            let detail = "messageExpression must evaluate to a string";
            is_text.then_some(checked).ok_or_else(|| detail.to_owned())
        });
    match checked {
        Ok(checked) => report.note(&checked, most, "messageExpression", field),
        Err(detail) => {
            let error = FieldError::invalid_text(field, &shown(rule), &detail);
            report.of_rules.push(error);
        }
    }
}

impl Report {
    /// Counts the cost of an expression, and reports one that costs too much.
    fn note(&mut self, checked: &Checked, most: u64, name: &str, field: &str) {
        let cost = checked.cost.saturating_mul(most);
        if cost > COST_MAX {
            let detail = too_expensive(&format!("estimated {name} cost"), cost, COST_MAX);
            self.of_rules.push(FieldError::forbidden(field, &detail));
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
