//! `MutatingAdmissionPolicy`: its compiled form, and its changes of an object.
//!
//! Upstream: `k8s.io/apiserver/pkg/admission/plugin/policy/mutating`

use serde_json::{Map, Value, json};

use super::definition::Definition;
use super::environment::Environment;
use super::evaluation::{self, BUDGET, Variables};
use super::expression::{Expression, Returns};
use super::inputs::{self, Inputs, Reader};
use super::match_conditions::{Match, MatchConditions};
use crate::admission::{Constraints, FailurePolicy};
use crate::cel::{objects, values};
use crate::members::text;

/// A compiled policy.
#[derive(Debug)]
pub struct MutatingPolicy {
    /// The name.
    pub name: String,
    /// The effect of a failure.
    pub failure_policy: FailurePolicy,
    /// The requests that it applies to.
    pub constraints: Constraints,
    /// `apiVersion` and `kind` of the parameters, if it has any.
    pub param_kind: Option<(String, String)>,
    /// True if it is asked again after others changed the object.
    pub is_reinvoked: bool,
    match_conditions: MatchConditions,
    variables: Variables,
    mutations: Vec<Mutation>,
}

/// A change by a policy.
#[derive(Debug)]
enum Mutation {
    Apply(Expression),
    Patch(Expression),
}

/// A change of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Merge these fields.
    Apply(Value),
    /// Apply these operations of a JSON patch.
    Patch(Vec<Value>),
}

impl MutatingPolicy {
    /// Compiles a policy. Expressions that don't compile fail when they are evaluated.
    ///
    /// Upstream: `compilePolicy`
    pub fn compile(object: &Value) -> Self {
        let definition = Definition::compile(object);
        let environment = Environment {
            makes_objects: true,
            ..definition.environment.clone()
        };
        let mutations = definition.list("mutations").iter();
        Self {
            is_reinvoked: text(definition.spec, "reinvocationPolicy") == "IfNeeded",
            mutations: mutations
                .filter_map(|mutation| Mutation::compile(mutation, &environment))
                .collect(),
            name: definition.name,
            failure_policy: definition.failure_policy,
            constraints: definition.constraints,
            param_kind: definition.param_kind,
            match_conditions: definition.match_conditions,
            variables: definition.variables,
        }
    }

    /// Returns true if a request meets the match conditions.
    ///
    /// # Errors
    ///
    /// A condition fails.
    pub fn matches(&self, inputs: &Inputs, params: Option<&Value>) -> Result<bool, String> {
        match self
            .match_conditions
            .evaluate(&self.variables, inputs, &inputs::params(params))
        {
            Match::Met => Ok(true),
            Match::Unmet => Ok(false),
            Match::Failed(text) => Err(text),
        }
    }

    /// Returns the number of changes.
    pub fn changes(&self) -> usize {
        self.mutations.len()
    }

    /// Evaluates a change.
    ///
    /// # Errors
    ///
    /// The expression fails, or makes something else than a change.
    pub fn change(
        &self,
        index: usize,
        inputs: &Inputs,
        params: Option<&Value>,
    ) -> Result<Change, String> {
        let Some(mutation) = self.mutations.get(index) else {
            return Ok(Change::Patch(Vec::new()));
        };
        let (Mutation::Apply(expression) | Mutation::Patch(expression)) = mutation;
        expression.program()?;
        let bindings = inputs.bindings(&inputs::params(params), Reader::Rules);
        let expressions = [Some(expression)];
        let (outcomes, _) = evaluation::evaluate(expressions, &self.variables, &bindings, BUDGET)?;
        let outcome = outcomes.into_iter().flatten().next();
        let value = outcome.unwrap_or_else(|| Ok(values::null()))?;
        match mutation {
            Mutation::Apply(_) => {
                placed(&value)?;
                objects::to_json(&*value).map(Change::Apply)
            }
            Mutation::Patch(_) => {
                let operations = values::elements(&value);
                let operations = operations.iter().map(operation);
                operations.collect::<Result<_, String>>().map(Change::Patch)
            }
        }
    }
}

impl Mutation {
    fn compile(mutation: &Value, environment: &Environment) -> Option<Self> {
        let compile = |member: &str, returns| {
            let source = text(mutation.get(member)?, "expression");
            Some(Expression::compile(source, environment, returns))
        };
        match text(mutation, "patchType") {
            "JSONPatch" => compile("jsonPatch", Returns::Patch).map(Self::Patch),
            "ApplyConfiguration" => compile("applyConfiguration", Returns::Object).map(Self::Apply),
            _ => None,
        }
    }
}

/// Checks that the types of made objects name the fields that hold them.
fn placed(value: &values::Value) -> Result<(), String> {
    let wrong = objects::misplaced(&**value);
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(format!("type mismatch: {}", wrong.join("\n")))
    }
}

/// Returns an operation of a JSON patch.
fn operation(made: &values::Value) -> Result<Value, String> {
    let mut operation = Map::new();
    for name in ["op", "path", "from"] {
        let found = objects::member(&**made, name);
        let found = found.as_ref().and_then(values::as_text).unwrap_or_default();
        if name != "from" || !found.is_empty() {
            operation.insert(name.to_owned(), json!(found));
        }
    }
    if let Some(value) = objects::member(&**made, "value") {
        placed(&value)?;
        let value = objects::to_json(&*value).map_err(|text| {
            format!(
                "JSONPath valueExpression evaluated to a type that could not marshal to JSON: {text}"
            )
        })?;
        operation.insert("value".to_owned(), value);
    }
    Ok(Value::Object(operation))
}
