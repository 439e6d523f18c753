//! The minimizer: shrinks a failing plan to a small one that still fails.
//!
//! A pass lists the candidates of a plan, each a little simpler. An [`Oracle`] says which of them
//! still fail. The first of those is the next plan. Passes are repeated until none of them shrinks
//! the plan.

mod classes;
mod settings;
mod values;

use std::collections::HashSet;
use std::fmt;

use crate::plan::Plan;

/// Says which plans fail.
pub trait Oracle {
    /// The reason for no response.
    type Error;

    /// Returns the first of these plans that fails.
    ///
    /// # Errors
    ///
    /// The plans could not be run.
    fn first_failing(&mut self, candidates: &[Plan]) -> Result<Option<usize>, Self::Error>;

    /// Receives a smaller plan that fails.
    fn shrunk(&mut self, _pass: Pass, _plan: &Plan) {}
}

/// A way to simplify a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Drops all steps of a class: of a kind, or on a set.
    Classes,
    /// Drops this number of steps.
    Steps(usize),
    /// Simplifies the values of the steps.
    Values,
    /// Simplifies the environment.
    Settings,
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Classes => f.write_str("classes of steps"),
            Self::Steps(1) => f.write_str("single steps"),
            Self::Steps(count) => write!(f, "{count} steps at once"),
            Self::Values => f.write_str("values"),
            Self::Settings => f.write_str("settings"),
        }
    }
}

impl Pass {
    /// Returns the passes over a plan with this number of steps.
    pub fn all(steps: usize) -> Vec<Self> {
        let mut passes = vec![Self::Classes];
        let mut count = steps / 2;
        while count > 0 {
            passes.push(Self::Steps(count));
            count /= 2;
        }
        passes.extend([Self::Settings, Self::Values]);
        passes
    }

    /// Returns the candidates of a plan, the boldest first.
    pub fn candidates(self, plan: &Plan) -> Vec<Plan> {
        match self {
            Self::Classes => classes::candidates(plan),
            Self::Steps(count) => without_steps(plan, count),
            Self::Values => values::candidates(plan),
            Self::Settings => settings::candidates(plan),
        }
    }
}

/// Returns the plan without each run of `count` neighbouring steps.
fn without_steps(plan: &Plan, count: usize) -> Vec<Plan> {
    let starts = (0..plan.steps.len()).step_by(count.max(1));
    let without = starts.map(|start| {
        let mut smaller = plan.clone();
        let end = (start + count).min(smaller.steps.len());
        smaller.steps.drain(start..end);
        smaller
    });
    without.collect()
}

/// Shrinks a plan that fails until no candidate fails.
///
/// # Errors
///
/// The oracle could not say which plans fail.
pub fn minimize<O: Oracle>(plan: Plan, oracle: &mut O) -> Result<Plan, O::Error> {
    let mut plan = plan;
    let mut tried = HashSet::from([plan.to_json()]);
    loop {
        let before = plan.clone();
        for pass in Pass::all(plan.steps.len()) {
            plan = run_pass(pass, plan, &mut tried, oracle)?;
        }
        if plan == before {
            return Ok(plan);
        }
    }
}

/// Shrinks a plan in one way. Goes on where it was after each success: what failed to shrink the
/// larger plan rarely shrinks the smaller one, and the next round tries it again.
fn run_pass<O: Oracle>(
    pass: Pass,
    plan: Plan,
    tried: &mut HashSet<String>,
    oracle: &mut O,
) -> Result<Plan, O::Error> {
    let mut plan = plan;
    let mut from = 0;
    loop {
        let all = pass.candidates(&plan).into_iter().enumerate().skip(from);
        let (places, mut candidates): (Vec<usize>, Vec<Plan>) = all
            .filter(|(_, candidate)| !tried.contains(&candidate.to_json()))
            .unzip();
        let found = oracle.first_failing(&candidates)?;
        let looked_at = found.map_or(candidates.len(), |found| found + 1);
        tried.extend(candidates.iter().take(looked_at).map(Plan::to_json));
        let (Some(found), Some(place)) = (found, found.and_then(|at| places.get(at))) else {
            return Ok(plan);
        };
        from = *place;
        plan = candidates.swap_remove(found);
        oracle.shrunk(pass, &plan);
    }
}

#[cfg(test)]
mod tests;
