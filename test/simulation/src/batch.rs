//! Many runs, each in a separate process.

use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use simulation::outcome::Outcome;
use simulation::plan::{self, Plan};

use crate::child::in_child;
use crate::report::{Report, now};

/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(30);

/// Number of violations that are printed for a failed run.
const SHOWN_MAX: usize = 5;

/// The result of one process.
type Done = (String, Plan, Result<Outcome, String>);

/// Runs all plans, `jobs` at a time, and prints those that break a rule.
pub(crate) fn run_all(
    plans: impl Iterator<Item = (String, Plan)>,
    jobs: usize,
    out: &mut impl io::Write,
) -> Result<Report, String> {
    let jobs = match jobs {
        0 => thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs,
    };
    let mut plans = plans;
    let mut report = Report::new(jobs);
    let (sender, finished) = mpsc::channel::<Done>();
    let mut running = 0;
    let mut shown = now();
    loop {
        while running < jobs {
            let Some((name, plan)) = plans.next() else {
                break;
            };
            let sender = sender.clone();
            running += 1;
            thread::spawn(move || {
                let outcome = in_child(&plan);
                // The receiver waits for every run.
                let _ = sender.send((name, plan, outcome));
            });
        }
        if running == 0 {
            return Ok(report);
        }
        let Ok((name, plan, outcome)) = finished.recv() else {
            return Err("a run's thread panicked".to_owned());
        };
        running -= 1;
        let outcome = outcome.map_err(|error| format!("{name}: {error}"))?;
        let printed = print_failure(&name, &plan, &outcome, out);
        report.add(&outcome);
        let progress = if shown.elapsed() > PROGRESS {
            shown = now();
            writeln!(out, "{}", report.progress())
        } else {
            Ok(())
        };
        printed
            .and(progress)
            .map_err(|error| format!("cannot print: {error}"))?;
    }
}

/// Returns the line that runs a plan again.
fn replay(plan: &Plan) -> io::Result<String> {
    let program = program();
    if *plan == plan::of_seed(plan.seed) {
        let seed = plan.seed;
        return Ok(format!("{program} run --print table --seed {seed}"));
    }
    if *plan == plan::of_fence_seed(plan.seed) {
        let seed = plan.seed;
        return Ok(format!("{program} run --print table --fence-seed {seed}"));
    }
    if *plan == plan::of_opt_in_seed(plan.seed) {
        let seed = plan.seed;
        return Ok(format!("{program} run --print table --opt-ins-seed {seed}"));
    }
    let text = serde_json::to_string(plan)?;
    Ok(format!("{program} run --print table --plan - <<<'{text}'"))
}

fn print_failure(
    name: &str,
    plan: &Plan,
    outcome: &Outcome,
    out: &mut impl io::Write,
) -> io::Result<()> {
    if outcome.violations.is_empty() {
        return Ok(());
    }
    writeln!(out, "{name} (trace {}):", outcome.trace)?;
    for violation in outcome.violations.iter().take(SHOWN_MAX) {
        writeln!(out, "  {violation}")?;
    }
    writeln!(out, "  {}", replay(plan)?)
}

/// Returns the path by which this program was started, for lines that start it again.
pub(crate) fn program() -> String {
    let name = std::env::args().next();
    name.unwrap_or_else(|| "simulate".to_owned())
}
