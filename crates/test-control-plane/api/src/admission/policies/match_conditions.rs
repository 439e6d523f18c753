//! Match conditions: expressions that decide if a policy or webhook applies to a request.
//!
//! Upstream: `k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions`

use std::sync::Arc;

use serde_json::Value;

use super::environment::{Authorizers, Environment};
use super::evaluation::{self, MATCH_BUDGET, Variables};
use super::expression::{Expression, Returns};
use super::inputs::{self, Inputs, Reader};
use crate::cel::values;

/// The conditions of a policy or webhook.
#[derive(Debug)]
pub(crate) struct MatchConditions(Vec<Expression>);

/// The result of conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// All conditions are met.
    Met,
    /// A condition is not met.
    Unmet,
    /// Conditions failed, and none is unmet.
    Failed(String),
}

impl MatchConditions {
    /// Compiles the conditions of a webhook.
    pub(crate) fn of_webhook(webhook: &Value) -> Self {
        let conditions = webhook.get("matchConditions").and_then(Value::as_array);
        let environment = Environment {
            authorizers: Authorizers::WithRequestResource,
            ..Environment::default()
        };
        Self::compile(conditions.map_or(&[], Vec::as_slice), &environment)
    }

    /// Returns true if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Evaluates the conditions of a webhook, which has neither variables nor parameters.
    pub(crate) fn evaluate_alone(&self, inputs: &Inputs) -> Match {
        self.evaluate(&Variables::from([]), inputs, &inputs::params(None))
    }

    /// Compiles the list `matchConditions` of a policy.
    pub(super) fn compile(conditions: &[Value], environment: &Environment) -> Self {
        let compiled = conditions.iter().map(|condition| {
            let source = condition.get("expression").and_then(Value::as_str);
            Expression::compile(source.unwrap_or_default(), environment, Returns::Bool)
        });
        Self(compiled.collect())
    }

    /// Evaluates the conditions. As in upstream, they have no namespace.
    pub(super) fn evaluate(
        &self,
        variables: &Variables,
        inputs: &Inputs,
        params: &Arc<values::Value>,
    ) -> Match {
        if self.0.is_empty() {
            return Match::Met;
        }
        let bindings = inputs.bindings(params, Reader::Conditions);
        let conditions = self.0.iter().map(Some);
        let found = evaluation::evaluate(conditions, variables, &bindings, MATCH_BUDGET);
        let outcomes = match found {
            Ok((outcomes, _)) => outcomes,
            Err(text) => return Match::Failed(text),
        };
        let mut failed = Vec::new();
        for outcome in outcomes.into_iter().flatten() {
            match outcome {
                Ok(value) if values::as_bool(&value) == Some(false) => return Match::Unmet,
                Ok(_) => {}
                Err(text) if failed.contains(&text) => {}
                Err(text) => failed.push(text),
            }
        }
        match failed.as_slice() {
            [] => Match::Met,
            [text] => Match::Failed(text.clone()),
            texts => Match::Failed(format!("[{}]", texts.join(", "))),
        }
    }
}
