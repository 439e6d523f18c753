//! `ValidatingAdmissionPolicy`: its compiled form, and its decisions about a request.
//!
//! Upstream: `k8s.io/apiserver/pkg/admission/plugin/policy/validating`

use serde_json::Value;

use super::definition::Definition;
use super::environment::{Authorizers, Environment};
use super::evaluation::{self, BUDGET, Outcome, Variables};
use super::expression::{Expression, Returns};
use super::inputs::{self, Bindings, Inputs, Reader};
use super::match_conditions::{Match, MatchConditions};
use crate::admission::{Constraints, FailurePolicy};
use crate::cel::values;
use crate::members::text;

/// The largest message of a `messageExpression`, in bytes.
///
/// Upstream: `MaxEvaluatedMessageExpressionSizeBytes`
const MESSAGE_MAX: usize = 5 * 1024;

/// A compiled policy.
#[derive(Debug)]
pub struct ValidatingPolicy {
    /// The name.
    pub name: String,
    /// The effect of a failure.
    pub failure_policy: FailurePolicy,
    /// The requests that it applies to.
    pub constraints: Constraints,
    /// `apiVersion` and `kind` of the parameters, if it has any.
    pub param_kind: Option<(String, String)>,
    match_conditions: MatchConditions,
    variables: Variables,
    validations: Vec<Validation>,
    annotations: Vec<(String, Expression)>,
}

/// A rule of a policy.
#[derive(Debug)]
struct Validation {
    expression: Expression,
    message_expression: Option<Expression>,
    message: String,
    reason: Option<String>,
}

/// A rule that a request breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The index of the rule.
    pub index: usize,
    /// The message.
    pub message: String,
    /// The reason for the response's status; empty for the default.
    pub reason: String,
}

/// The value of an annotation for the audit log, or the error that denies the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditAnnotation {
    /// The key, without the policy's name.
    pub key: String,
    /// The value.
    pub value: Result<String, String>,
}

/// The result of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The broken rules.
    pub denials: Vec<Decision>,
    /// Annotations for the audit log.
    pub annotations: Vec<AuditAnnotation>,
}

impl Verdict {
    fn failed(policy: FailurePolicy, message: String) -> Self {
        let denial = Decision {
            index: 0,
            message,
            reason: String::new(),
        };
        let is_denied = policy == FailurePolicy::Fail;
        Self {
            denials: is_denied.then_some(denial).into_iter().collect(),
            annotations: Vec::new(),
        }
    }
}

impl ValidatingPolicy {
    /// Compiles a policy. Expressions that don't compile fail when they are evaluated.
    ///
    /// Upstream: `compilePolicy`
    pub fn compile(object: &Value) -> Self {
        let definition = Definition::compile(object);
        let environment = &definition.environment;
        let of_messages = Environment {
            authorizers: Authorizers::None,
            ..environment.clone()
        };
        let validations = definition.list("validations").iter();
        let annotations = definition.list("auditAnnotations").iter();
        Self {
            validations: validations
                .map(|validation| Validation::compile(validation, environment, &of_messages))
                .collect(),
            annotations: annotations
                .map(|annotation| {
                    let source = text(annotation, "valueExpression");
                    let returns = Returns::TextOrNull;
                    let compiled = Expression::compile(source, environment, returns);
                    (text(annotation, "key").to_owned(), compiled)
                })
                .collect(),
            name: definition.name,
            failure_policy: definition.failure_policy,
            constraints: definition.constraints,
            param_kind: definition.param_kind,
            match_conditions: definition.match_conditions,
            variables: definition.variables,
        }
    }

    /// Decides about a request.
    ///
    /// Upstream: `validator.Validate`
    pub fn validate(&self, inputs: &Inputs, params: Option<&Value>) -> Verdict {
        let policy = self.failure_policy;
        let params = inputs::params(params);
        let variables = &self.variables;
        match self.match_conditions.evaluate(variables, inputs, &params) {
            Match::Met => {}
            Match::Unmet => return Verdict::default(),
            Match::Failed(text) => return Verdict::failed(policy, text),
        }
        let bindings = inputs.bindings(&params, Reader::Rules);
        let rules = self.validations.iter().map(|rule| Some(&rule.expression));
        let found = evaluation::evaluate(rules, variables, &bindings, BUDGET);
        let (outcomes, rest) = match found {
            Ok(found) => found,
            Err(text) => return Verdict::failed(policy, text),
        };
        let needs_messages = outcomes.iter().flatten().any(|outcome| !is_true(outcome));
        if !needs_messages && self.annotations.is_empty() {
            return Verdict::default();
        }
        let bindings = inputs.bindings(&params, Reader::Messages);
        let messages = self.validations.iter();
        let messages =
            messages.map(|rule| rule.message_expression.as_ref().filter(|_| needs_messages));
        let messages = evaluation::evaluate(messages, variables, &bindings, rest);
        let messages = messages.map(|(messages, _)| messages);
        let mut denials = Vec::new();
        for (index, (rule, outcome)) in self.validations.iter().zip(outcomes).enumerate() {
            let Some(outcome) = outcome else { continue };
            let own = messages
                .as_ref()
                .map(|all| all.get(index).and_then(Option::as_ref));
            denials.extend(rule.decide(index, policy, outcome, own));
        }
        let found = self.annotate(&inputs.bindings(&params, Reader::Annotations));
        match found {
            Ok(annotations) => Verdict {
                denials,
                annotations,
            },
            Err(text) => Verdict::failed(policy, text),
        }
    }

    fn annotate(&self, bindings: &Bindings) -> Result<Vec<AuditAnnotation>, String> {
        let expressions = self.annotations.iter().map(|(_, value)| Some(value));
        let (outcomes, _) = evaluation::evaluate(expressions, &self.variables, bindings, BUDGET)?;
        let mut annotations = Vec::new();
        for ((key, expression), outcome) in self.annotations.iter().zip(outcomes) {
            let value = match outcome {
                None => continue,
                Some(Err(_)) if self.failure_policy == FailurePolicy::Ignore => continue,
                Some(Err(text)) => Err(text),
                Some(Ok(value)) if values::is_null(&value) => continue,
                Some(Ok(value)) => match values::as_text(&value).map(str::trim) {
                    Some("") => continue,
                    Some(text) => Ok(text.to_owned()),
                    None => Err(unsupported(expression, &value)),
                },
            };
            let key = key.clone();
            annotations.push(AuditAnnotation { key, value });
        }
        Ok(annotations)
    }
}

fn unsupported(expression: &Expression, value: &values::Value) -> String {
    format!(
        "valueExpression '{}' resulted in unsupported return type: {}. Return type must be either \
         string or null.",
        expression.source(),
        value.get_type().name()
    )
}

fn is_true(outcome: &Outcome) -> bool {
    matches!(outcome, Ok(value) if values::as_bool(value) == Some(true))
}

impl Validation {
    fn compile(rule: &Value, environment: &Environment, of_messages: &Environment) -> Self {
        let message = text(rule, "messageExpression");
        let message =
            (!message.is_empty()).then(|| Expression::compile(message, of_messages, Returns::Text));
        Self {
            expression: Expression::compile(text(rule, "expression"), environment, Returns::Bool),
            message_expression: message,
            message: text(rule, "message").to_owned(),
            reason: rule
                .get("reason")
                .and_then(Value::as_str)
                .map(str::to_owned),
        }
    }

    /// Returns the decision for the outcome of the expression. `message` is that of the message's
    /// expression, or the error of all messages.
    fn decide(
        &self,
        index: usize,
        policy: FailurePolicy,
        outcome: Outcome,
        message: Result<Option<&Outcome>, &String>,
    ) -> Option<Decision> {
        let failed = |message: String| {
            let reason = String::new();
            (policy == FailurePolicy::Fail).then_some(Decision {
                index,
                message,
                reason,
            })
        };
        let value = match outcome {
            Err(text) => return failed(text),
            Ok(value) => value,
        };
        let own = match message {
            Err(text) => return failed(format!("failed messageExpression: {text}")),
            Ok(own) => own,
        };
        if values::as_bool(&value) == Some(true) {
            return None;
        }
        let own = own.and_then(|own| own.as_ref().ok());
        let own = own.and_then(|own| values::as_text(own)).map(str::trim);
        let own = own
            .filter(|text| !text.is_empty() && text.len() <= MESSAGE_MAX && !text.contains('\n'));
        let message = match (own, self.message.trim()) {
            (Some(own), _) => own.to_owned(),
            (None, "") => format!("failed expression: {}", self.expression.source().trim()),
            (None, message) => message.to_owned(),
        };
        Some(Decision {
            index,
            message,
            reason: self.reason.clone().unwrap_or_else(|| "Invalid".to_owned()),
        })
    }
}
