//! The evaluation of a policy's expressions within a budget.
//!
//! Upstream: `condition.ForInput`, `evaluationActivation.Evaluate`, `compositionContext`

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::environment::VARIABLES;
use super::expression::Expression;
use super::inputs::{Bindings, PARAMS};
use crate::cel::values::Value;
use crate::cel::{Members, Program, lazy};

/// The budget of all expressions of a policy for one request, in units of upstream.
///
/// Upstream: `RuntimeCELCostBudget`
pub(super) const BUDGET: u64 = 10_000_000;

/// The budget of all match conditions.
///
/// Upstream: `RuntimeCELCostBudgetMatchConditions`
pub(super) const MATCH_BUDGET: u64 = 2_500_000;

/// The error of a policy that costs too much.
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// A policy's variables, in order.
pub(super) type Variables = Arc<[(String, Expression)]>;

/// The value of an expression, or the text of its error.
pub(super) type Outcome = Result<Value, String>;

/// Evaluates expressions in order. Returns their outcomes and the rest of the budget; `None` stands
/// for an absent expression.
///
/// # Errors
///
/// The expressions cost more than the budget; the text is upstream's.
pub(super) fn evaluate<'e>(
    expressions: impl IntoIterator<Item = Option<&'e Expression>>,
    variables: &Variables,
    bindings: &Bindings,
    budget: u64,
) -> Result<(Vec<Option<Outcome>>, u64), String> {
    let composed = Arc::new(Composed::new(variables, bindings));
    let mut rest = budget;
    let mut outcomes = Vec::new();
    for expression in expressions {
        let Some(expression) = expression else {
            outcomes.push(None);
            continue;
        };
        let (outcome, cost) = composed.evaluate(expression);
        let cost = cost.saturating_add(composed.take_cost());
        rest = rest
            .checked_sub(cost)
            .ok_or_else(|| OUT_OF_BUDGET.to_owned())?;
        outcomes.push(Some(outcome));
    }
    Ok((outcomes, rest))
}

/// Variables that are evaluated when an expression first reads them.
#[derive(Debug)]
struct Composed {
    variables: Variables,
    bindings: Bindings,
    found: Vec<Slot>,
    /// The cost of the variables since it was last taken.
    cost: AtomicU64,
}

/// The value of a variable.
#[derive(Debug, Default)]
struct Slot {
    outcome: OnceLock<Outcome>,
    /// True while the variable is evaluated: one that reads itself has no value.
    is_running: AtomicBool,
}

impl Composed {
    fn new(variables: &Variables, bindings: &Bindings) -> Self {
        Self {
            variables: Arc::clone(variables),
            bindings: bindings.clone(),
            found: variables.iter().map(|_| Slot::default()).collect(),
            cost: AtomicU64::new(0),
        }
    }

    fn take_cost(&self) -> u64 {
        self.cost.swap(0, Ordering::Relaxed)
    }

    fn evaluate(self: &Arc<Self>, expression: &Expression) -> (Outcome, u64) {
        let program = match expression.program() {
            Ok(program) => program,
            Err(error) => return (Err(format!("compilation error: {error}")), 0),
        };
        let (outcome, cost) = self.run(program);
        let wrong = |error| {
            let source = expression.source();
            format!("expression '{source}' resulted in error: {error}")
        };
        (outcome.map_err(wrong), cost)
    }

    /// Runs a program with the variables that it reads.
    fn run(self: &Arc<Self>, program: &Program) -> (Result<Value, String>, u64) {
        let params = program
            .reads(PARAMS)
            .then(|| (PARAMS, self.bindings.params.clone_as_boxed()));
        let has_variables = !self.variables.is_empty() && program.reads(VARIABLES);
        let variables = has_variables.then(|| {
            let members: Arc<dyn Members> = Arc::new(Reference(Arc::clone(self)));
            (VARIABLES, lazy(members))
        });
        program.run(&self.bindings.scope, params.into_iter().chain(variables))
    }

    /// Evaluates a variable.
    fn compute(self: &Arc<Self>, name: &str, expression: &Expression) -> Outcome {
        let program = expression
            .program()
            .map_err(|error| format!("composited variable {name:?} fails to compile: {error}"))?;
        let (outcome, cost) = self.run(program);
        self.cost.fetch_add(cost, Ordering::Relaxed);
        outcome.map_err(|error| format!("composited variable {name:?} fails to evaluate: {error}"))
    }
}

/// The variables, for expressions and other variables.
#[derive(Debug)]
struct Reference(Arc<Composed>);

impl Members for Reference {
    fn member(&self, name: &str) -> Option<Result<&Value, String>> {
        let composed = &self.0;
        // The last one of a name counts.
        let place = composed
            .variables
            .iter()
            .rposition(|(known, _)| known == name)?;
        let (slot, (name, expression)) = composed
            .found
            .get(place)
            .zip(composed.variables.get(place))?;
        if let Some(outcome) = slot.outcome.get() {
            return Some(outcome.as_ref().map_err(String::clone));
        }
        if slot.is_running.swap(true, Ordering::Relaxed) {
            return Some(Err(format!("variable {name:?} reads itself")));
        }
        let outcome = composed.compute(name, expression);
        let outcome = slot.outcome.get_or_init(|| outcome);
        Some(outcome.as_ref().map_err(String::clone))
    }
}
