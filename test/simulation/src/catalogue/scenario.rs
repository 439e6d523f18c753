//! A scenario, and how it is played.

use super::{Check, RunView};
use crate::history::History;
use crate::judges::judge;
use crate::plan::Plan;
use crate::run::run;

/// The command that runs a plan.
const REPLAY: &str = "cargo run --locked -q -p simulation -- run";

/// A scenario of the catalogue.
pub struct Scenario {
    /// Its number.
    pub number: u32,
    /// The event.
    pub name: &'static str,
    /// Issues of kubernetes/kubernetes that it is about.
    pub origin: &'static [u32],
    /// Its plans, which are variants of each other.
    pub plans: fn() -> Vec<Plan>,
    /// Checks the situation and the result.
    pub expect: fn(&RunView<'_>, &mut Check),
}

impl Scenario {
    /// Runs a variant. A run can be reproduced if it is the first one of its process.
    ///
    /// # Errors
    ///
    /// The report of a failure: the violations, the failed expectations, and the plan.
    pub fn play(&self, variant: usize) -> Result<(), String> {
        let Self { number, name, .. } = self;
        let plans = (self.plans)();
        let plan = plans
            .get(variant)
            .ok_or_else(|| format!("scenario {number} has no variant {variant}"))?;
        let record = run(plan);
        let mut check = Check::default();
        for violation in judge(plan, &record).violations {
            check.fail(format!("violation: {violation}"));
        }
        let history = History::read(&record);
        (self.expect)(&RunView::new(variant, plan, &record, &history), &mut check);
        if check.failures().is_empty() {
            return Ok(());
        }
        let failures = check.failures().join("\n");
        let plan = serde_json::to_string(plan).unwrap_or_default();
        let again = format!("{REPLAY} --print table --plan - <<<'{plan}'");
        let origin = self.origin.iter();
        let origin: Vec<String> = origin
            .map(|it| format!("kubernetes/kubernetes#{it}"))
            .collect();
        let origin = origin.join(", ");
        Err(format!(
            "scenario {number}, {name} [{origin}]:\n{failures}\n{again}"
        ))
    }
}
