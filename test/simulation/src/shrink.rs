//! The subcommand `minimize`: each candidate runs in a separate process.

use std::io::{self, Write};
use std::thread;

use simulation::minimize::{Oracle, Pass, minimize};
use simulation::outcome::Outcome;
use simulation::plan::Plan;

use crate::child::in_child;

/// Number of candidates that run at the same time.
const JOBS: usize = 2;

/// Shrinks a plan that breaks a rule, the first one if none is named. Returns the rule too.
pub(crate) fn shrink(plan: Plan, rule: Option<&str>) -> Result<(Plan, String), String> {
    let outcome = in_child(&plan)?;
    let rule = broken_rule(&outcome, rule)?;
    let mut children = Children {
        rule: rule.clone(),
        runs: 1,
        progress: io::stderr(),
    };
    let steps = plan.steps.len();
    children.say(&format!("the plan breaks {rule}, number of steps: {steps}"))?;
    let plan = minimize(plan, &mut children)?;
    let (runs, steps) = (children.runs, plan.steps.len());
    children.say(&format!("steps left: {steps}, after {runs} runs"))?;
    Ok((plan, rule))
}

/// Returns the rule that every candidate must break.
fn broken_rule(outcome: &Outcome, wanted: Option<&str>) -> Result<String, String> {
    let Some(first) = outcome.violations.first() else {
        return Err("the plan breaks no rule, so there is nothing to minimize".to_owned());
    };
    let first = first.split(' ').next().unwrap_or_default();
    let rule = wanted.unwrap_or(first);
    if outcome.rules.contains(rule) {
        return Ok(rule.to_owned());
    }
    let rules: Vec<&str> = outcome.rules.iter().map(String::as_str).collect();
    let broken = rules.join(", ");
    Err(format!(
        "the plan does not break {rule}; it breaks {broken}"
    ))
}

/// Runs candidates.
struct Children<W> {
    /// The rule that they must break.
    rule: String,
    /// Number of runs so far.
    runs: usize,
    /// The sink of progress lines.
    progress: W,
}

impl<W: Write> Children<W> {
    fn say(&mut self, line: &str) -> Result<(), String> {
        writeln!(self.progress, "{line}").map_err(|error| format!("cannot print: {error}"))
    }
}

impl<W: Write> Oracle for Children<W> {
    type Error = String;

    fn first_failing(&mut self, candidates: &[Plan]) -> Result<Option<usize>, String> {
        for (nth, group) in candidates.chunks(JOBS).enumerate() {
            self.runs += group.len();
            let outcomes: Vec<_> = thread::scope(|scope| {
                let runs = group.iter().map(|plan| scope.spawn(|| in_child(plan)));
                let runs: Vec<_> = runs.collect();
                runs.into_iter()
                    .map(thread::ScopedJoinHandle::join)
                    .collect()
            });
            for (place, outcome) in outcomes.into_iter().enumerate() {
                match outcome.map_err(|_| "a run's thread panicked".to_owned())? {
                    Ok(outcome) if outcome.rules.contains(&self.rule) => {
                        return Ok(Some(nth * JOBS + place));
                    }
                    Ok(_) => {}
                    // A run that fails in another way does not break the rule.
                    Err(error) => self.say(&format!("a candidate is passed over: {error}"))?,
                }
            }
        }
        Ok(None)
    }

    fn shrunk(&mut self, pass: Pass, plan: &Plan) {
        let (runs, steps) = (self.runs, plan.steps.len());
        // Nothing is left to tell a closed terminal.
        let _ = self.say(&format!(
            "run {runs}: fewer or simpler {pass}, steps left: {steps}"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_broken_rule_is_minimized() {
        let none = broken_rule(&Outcome::default(), None).expect_err("nothing is broken");
        assert!(none.contains("breaks no rule"), "{none}");
        let outcome = Outcome {
            violations: vec!["R-4 at 1.000 s: x".to_owned()],
            rules: ["R-4".to_owned()].into(),
            ..Outcome::default()
        };
        assert_eq!(broken_rule(&outcome, None).as_deref(), Ok("R-4"));
        assert_eq!(broken_rule(&outcome, Some("R-4")).as_deref(), Ok("R-4"));
        let other = broken_rule(&outcome, Some("V-1")).expect_err("another rule");
        assert_eq!(other, "the plan does not break V-1; it breaks R-4");
    }
}
