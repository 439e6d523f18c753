//! The fields that both kinds of policies have, compiled.

use std::sync::Arc;

use serde_json::Value;

use super::environment::{Authorizers, Environment};
use super::evaluation::Variables;
use super::expression::{Expression, Returns};
use super::match_conditions::MatchConditions;
use crate::admission::{Constraints, FailurePolicy};
use crate::cel::Type;
use crate::members::text;

/// A policy's object with its common fields.
pub(super) struct Definition<'a> {
    pub(super) spec: &'a Value,
    pub(super) name: String,
    pub(super) failure_policy: FailurePolicy,
    pub(super) constraints: Constraints,
    /// `apiVersion` and `kind` of the parameters, if it has any.
    pub(super) param_kind: Option<(String, String)>,
    pub(super) match_conditions: MatchConditions,
    pub(super) variables: Variables,
    /// The variables of the policy's other expressions.
    pub(super) environment: Environment,
}

impl<'a> Definition<'a> {
    /// Compiles the common fields. Expressions that don't compile fail when they are evaluated.
    ///
    /// Upstream: `compilePolicy`
    pub(super) fn compile(object: &'a Value) -> Self {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let metadata = object.get("metadata").unwrap_or(&Value::Null);
        let param_kind = spec.get("paramKind").filter(|kind| kind.is_object());
        let mut environment = Environment {
            params: param_kind.map(|_| Type::Dyn),
            authorizers: Authorizers::WithRequestResource,
            variables: Some(Vec::new()),
            ..Environment::default()
        };
        let variables = compile_variables(list(spec, "variables"), &mut environment);
        let conditions = list(spec, "matchConditions");
        Self {
            spec,
            name: text(metadata, "name").to_owned(),
            failure_policy: FailurePolicy::read(spec),
            constraints: Constraints::read(spec.get("matchConstraints")),
            param_kind: param_kind.map(|kind| {
                let of = |name| text(kind, name).to_owned();
                (of("apiVersion"), of("kind"))
            }),
            match_conditions: MatchConditions::compile(conditions, &environment),
            variables,
            environment,
        }
    }

    /// Returns the elements of a list of the spec.
    pub(super) fn list(&self, name: &str) -> &'a [Value] {
        list(self.spec, name)
    }
}

fn list<'a>(spec: &'a Value, name: &str) -> &'a [Value] {
    let list = spec.get(name).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

/// Compiles the list `variables` of a policy, and declares them.
fn compile_variables(variables: &[Value], environment: &mut Environment) -> Variables {
    let mut compiled = Vec::new();
    for variable in variables {
        let (name, source) = (text(variable, "name"), text(variable, "expression"));
        let expression = Expression::compile(source, environment, Returns::Anything);
        environment.add_variable(name, expression.result_type());
        compiled.push((name.to_owned(), expression));
    }
    Arc::from(compiled)
}
