//! Evaluation of the rules of a schema.
//!
//! Upstream: `Validator` of `k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel`

use serde_json::Value;

use super::lists;
use super::node::{Node, join};
use super::ratcheting::is_unchanged;
use crate::cel::{Evaluation, LIMIT_EXCEEDED, Outcome, Program, Variables, values};
use crate::custom::{AdditionalProperties, ListType, Rule, Schema, field_path, read_value};
use crate::status::FieldError;
use crate::validation::Findings;

/// Reasons of errors after which no rule is evaluated.
const BLOCKING: [&str; 5] = [
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
];

/// The largest cost of all rules of an object.
///
/// Upstream: `RuntimeCELCostBudget`
const BUDGET: u64 = 10_000_000;

/// The error of a rule beyond the budget.
const OVER_BUDGET: &str = "validation failed due to running out of cost budget, no further validation \
                           rules will be run";

/// The error of a message beyond the budget.
const MESSAGE_OVER_BUDGET: &str = "messageExpression evaluation failed due to running out of cost \
                                   budget, no further validation rules will be run";

/// Maximum length of a message that an expression makes, in bytes.
///
/// Upstream: `MaxEvaluatedMessageExpressionSizeBytes`
const MESSAGE_MAX: usize = 5 * 1024;

/// Failures so far, and the cost that is left; `None` once no further rule is evaluated.
struct Run {
    findings: Findings,
    budget: Option<u64>,
}

impl Run {
    fn new(findings: Findings) -> Self {
        let budget = Some(BUDGET);
        Self { findings, budget }
    }

    /// Takes the cost of an evaluation from the budget. Returns false if that is too small.
    fn spend(&mut self, cost: u64) -> bool {
        self.budget = self.budget.and_then(|budget| budget.checked_sub(cost));
        self.budget.is_some()
    }

    /// Adds the last error.
    fn end(&mut self, error: FieldError) {
        self.findings.errors.push(error);
        self.budget = None;
    }
}

/// Adds the failures of all rules to those of the other checks, unless one of these makes rules
/// meaningless.
pub(super) fn validate(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    mut findings: Findings,
) -> Findings {
    if !has_rules(schema) {
        return findings;
    }
    let mut errors = findings.errors.iter();
    if errors.any(|error| BLOCKING.contains(&error.reason)) {
        let detail = "some validation rules were not checked because the object was invalid; \
                      correct the existing errors to complete validation";
        let error = FieldError::invalid("<nil>", &Value::Null, detail);
        findings.errors.push(error);
        return findings;
    }
    let path = "";
    let mut run = Run::new(findings);
    check(schema, Node { value, old, path }, true, false, &mut run);
    run.findings
}

/// Returns the failures of the rules for a default at a path: as an unchanged value, or else as a new
/// one.
pub(super) fn errors_of_default(schema: &Schema, value: &Value, path: &str) -> Vec<FieldError> {
    let errors = |old| {
        let mut run = Run::new(Findings::default());
        let node = Node { value, old, path };
        check(schema, node, schema.embedded, false, &mut run);
        run.findings.errors
    };
    let unchanged = errors(Some(value));
    if unchanged.is_empty() {
        errors(None)
    } else {
        unchanged
    }
}

fn has_rules(schema: &Schema) -> bool {
    let additional = match &schema.additional {
        AdditionalProperties::Of(inner) => has_rules(inner),
        _ => false,
    };
    !schema.rules.is_empty()
        || additional
        || schema.items.as_deref().is_some_and(has_rules)
        || schema.properties.values().any(has_rules)
}

/// Checks a value, then those in it. `is_kept` is true if the value around one without a counterpart
/// is unchanged.
fn check(schema: &Schema, node: Node<'_>, is_root: bool, is_kept: bool, run: &mut Run) {
    if node.value.is_null() || run.budget.is_none() {
        return;
    }
    // The whole object is never unchanged: its schema doesn't specify its metadata.
    let is_unchanged = || {
        let is_kept = is_kept && node.old.is_none();
        !node.path.is_empty() && (is_kept || is_unchanged(schema, node))
    };
    own_rules(schema, node, is_root, is_unchanged, run);
    match node.value {
        Value::Array(items) => {
            let Some(inner) = schema.items.as_deref() else {
                return;
            };
            let old = node.old.and_then(Value::as_array);
            let old = old.filter(|_| schema.list_type == ListType::Map);
            let is_kept = old.is_none() && has_rules(inner) && is_unchanged();
            for (index, item) in items.iter().enumerate() {
                let mut before = old.into_iter().flatten();
                let keys = &schema.list_keys;
                let node = Node {
                    value: item,
                    old: before.find(|old| lists::has_same_keys(keys, old, item)),
                    path: &format!("{}[{index}]", node.path),
                };
                check(inner, node, inner.embedded, is_kept, run);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                let (inner, path) = match (schema.properties.get(name), &schema.additional) {
                    (Some(inner), _) => (inner, join(node.path, name)),
                    (None, AdditionalProperties::Of(inner)) => {
                        (inner.as_ref(), format!("{}[{name}]", node.path))
                    }
                    (None, _) => continue,
                };
                let old = node.old.and_then(|old| old.get(name));
                let path = path.as_str();
                let node = Node { value, old, path };
                check(inner, node, inner.embedded, is_kept && old.is_none(), run);
            }
        }
        _ => {}
    }
}

/// The variables of a value's rules.
struct Values {
    own: values::Value,
    old: Option<values::Value>,
    has_unreadable: bool,
}

/// Evaluates the rules of a value itself.
fn own_rules(
    schema: &Schema,
    node: Node<'_>,
    is_root: bool,
    is_unchanged: impl Fn() -> bool,
    run: &mut Run,
) {
    if schema.rules.is_empty() {
        return;
    }
    let old = node.old.filter(|old| !old.is_null());
    let own = read_value(schema, node.value, is_root);
    let read_old = old.map(|old| read_value(schema, old, is_root));
    let values = Values {
        has_unreadable: own.has_unreadable
            || read_old.as_ref().is_some_and(|old| old.has_unreadable),
        own: own.value,
        old: read_old.map(|old| old.value),
    };
    let mut programs = schema.rules.iter().filter_map(Rule::program);
    let shows_old = programs.any(Program::reads_old);
    for rule in &schema.rules {
        if run.budget.is_none() {
            return;
        }
        let Some(program) = rule.program() else {
            continue;
        };
        let reads_old = program.reads_old();
        if reads_old && old.is_none() && rule.optional_old != Some(true) {
            continue;
        }
        let rule_check = RuleCheck {
            schema,
            rule,
            node,
            values: &values,
            shows_old,
        };
        let Some(error) = rule_check.error(program, run) else {
            continue;
        };
        if !reads_old && is_unchanged() {
            let text = format!("{}: {}", error.field, error.message);
            run.findings.warnings.push(text);
        } else {
            run.findings.errors.push(error);
        }
    }
}

/// The check of one rule of a value.
struct RuleCheck<'a> {
    schema: &'a Schema,
    rule: &'a Rule,
    node: Node<'a>,
    values: &'a Values,
    /// True if messages read the old value: a rule of the value does so.
    shows_old: bool,
}

impl RuleCheck<'_> {
    /// Returns the failure of the rule, if it fails.
    fn error(&self, program: &Program, run: &mut Run) -> Option<FieldError> {
        let rule = self.rule;
        let of = Value::from(self.schema.of.map_or("", |of| of.name()));
        let found = self.outcome(program);
        if !run.spend(found.cost) {
            run.end(FieldError::invalid(self.at(), &of, OVER_BUDGET));
            return None;
        }
        let error = match found.outcome {
            Ok(Outcome::Bool(true)) => return None,
            Ok(_) => return self.message(run),
            Err(error) => error,
        };
        let named = match rule.message.trim() {
            "" => rule.source.trim(),
            message => message,
        };
        let detail = if error.starts_with("no such overload") {
            format!(
                "'{error}': call arguments did not match a supported operator, function or macro \
                 signature for rule: {named}"
            )
        } else if error == LIMIT_EXCEEDED {
            let detail = format!(
                "'{error}': no further validation rules will be run due to call cost exceeds limit \
                 for rule: {named}"
            );
            run.end(FieldError::invalid(self.at(), &of, &detail));
            return None;
        } else {
            format!("{error} evaluating rule: {named}")
        };
        Some(FieldError::invalid(self.at(), &of, &detail))
    }

    /// Returns the error of a rule that is false.
    fn message(&self, run: &mut Run) -> Option<FieldError> {
        let (rule, node) = (self.rule, self.node);
        let mut detail = rule.failure();
        if let Some(program) = rule.message_program() {
            let found = self.text(program);
            if !run.spend(found.cost) {
                let of = Value::from(self.schema.of.map_or("", |of| of.name()));
                run.end(FieldError::invalid(self.at(), &of, MESSAGE_OVER_BUDGET));
                return None;
            }
            if let Ok(Outcome::Text(text)) = found.outcome
                && is_line(&text)
            {
                text.trim().clone_into(&mut detail);
            }
        }
        let steps = field_path(&rule.field_path, self.schema, true);
        let steps = steps.map(|(steps, _)| steps).unwrap_or_default();
        // Upstream adds the path as if it were one field.
        let own = steps
            .iter()
            .fold(String::new(), |path, step| step.after(&path));
        let path = if own.is_empty() {
            self.at().to_owned()
        } else {
            join(node.path, &own)
        };
        Some(error_of(rule, path, node.value, &detail))
    }

    fn at(&self) -> &str {
        if self.node.path.is_empty() {
            "<nil>"
        } else {
            self.node.path
        }
    }

    fn outcome(&self, program: &Program) -> Evaluation {
        let values = self.values;
        let optional = (self.rule.optional_old == Some(true)).then(|| {
            let old = values.old.as_ref().map(|old| old.clone_as_boxed());
            values::optional(old)
        });
        self.evaluate(program, optional.as_ref().or(values.old.as_ref()))
    }

    /// Evaluates a message. As in upstream, its old value is never optional.
    fn text(&self, program: &Program) -> Evaluation {
        self.evaluate(program, self.values.old.as_ref().filter(|_| self.shows_old))
    }

    fn evaluate(&self, program: &Program, old: Option<&values::Value>) -> Evaluation {
        program.evaluate(&Variables {
            own: &self.values.own,
            old,
            has_unreadable: self.values.has_unreadable,
        })
    }
}

/// Returns true for a message that can be shown.
fn is_line(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.len() <= MESSAGE_MAX && !text.contains('\n')
}

fn error_of(rule: &Rule, path: String, value: &Value, detail: &str) -> FieldError {
    let is_whole = matches!(value, Value::Array(_) | Value::Object(_));
    match rule.reason.as_deref() {
        Some("FieldValueForbidden") => FieldError::forbidden(path, detail),
        Some("FieldValueRequired") => FieldError::required(path, detail),
        Some("FieldValueDuplicate") if is_whole => FieldError::duplicate_object(path),
        Some("FieldValueDuplicate") => FieldError::duplicate(path, value),
        _ if is_whole => FieldError::invalid_object(path, detail),
        _ => FieldError::invalid(path, value, detail),
    }
}
