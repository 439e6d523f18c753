//! The program behind `make simulate`.

mod batch;
mod report;

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use simulation::exhaustive::{plans, workloads};
use simulation::outcome::Outcome;
use simulation::plan::Plan;
use simulation::run::run;
use simulation::table::table;

/// Simulates the controller under faults. Every run has a process of its own, so it can be
/// reproduced from its seed or its plan.
#[derive(Parser)]
struct Args {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// Number of seeds.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// Number of runs at the same time; one for each processor if 0.
    #[arg(long, default_value_t = 0)]
    jobs: usize,
    /// Fails if the runs together don't reach every situation.
    #[arg(long)]
    all_situations: bool,
    /// Instead of seeds: hits every write and every event of this workload with every fault in
    /// turn; `all` for all workloads.
    #[arg(long, value_name = "NAME")]
    exhaust: Option<String>,
    /// Instead of seeds: runs the plan in this file; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Instead of seeds: runs this seed alone.
    #[arg(long)]
    seed: Option<u64>,
    /// With --seed or --plan: prints what happened.
    #[arg(long)]
    table: bool,
    /// With --table: also prints reads and syncs.
    #[arg(long)]
    reads: bool,
    /// With --seed or --plan: prints the outcome as JSON.
    #[arg(long)]
    json: bool,
    /// With --seed: prints the plan and runs nothing.
    #[arg(long)]
    show_plan: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match perform(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Nothing is left to tell a closed terminal.
            let _ = writeln!(io::stderr(), "simulate: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Does what the arguments say. Returns true if no rule was broken.
fn perform(args: &Args) -> Result<bool, String> {
    let mut out = io::stdout().lock();
    let single = match (&args.plan, args.seed) {
        (Some(path), _) => Some(read_plan(path)?),
        (None, Some(seed)) => Some(Plan::of_seed(seed)),
        (None, None) => None,
    };
    let done = match (single, &args.exhaust) {
        (Some(plan), _) if args.show_plan => writeln!(out, "{}", plan.to_json()).map(|()| true),
        (Some(plan), _) => show(args, &plan, &mut out),
        (None, Some(name)) => return exhaust(args, name, &mut out),
        (None, None) => return seeds(args, &mut out),
    };
    done.map_err(|error| format!("cannot print: {error}"))
}

fn read_plan(path: &PathBuf) -> Result<Plan, String> {
    let mut text = String::new();
    let read = if path.as_os_str() == "-" {
        io::stdin().read_to_string(&mut text).map(drop)
    } else {
        fs::read_to_string(path).map(|read| text = read)
    };
    read.map_err(|error| format!("cannot read the plan {}: {error}", path.display()))?;
    Plan::from_json(&text).map_err(|error| format!("{} is not a plan: {error}", path.display()))
}

fn show(args: &Args, plan: &Plan, out: &mut impl io::Write) -> io::Result<bool> {
    let record = run(plan);
    let outcome = Outcome::judged(plan, &record);
    if args.table {
        write!(out, "{}", table(&record, args.reads))?;
    }
    if args.json {
        writeln!(out, "{}", serde_json::json!(outcome))?;
        return Ok(outcome.violations.is_empty());
    }
    for violation in &outcome.violations {
        writeln!(out, "{violation}")?;
    }
    let Outcome {
        trace,
        seconds,
        requests,
        ..
    } = &outcome;
    let broken = outcome.violations.len();
    writeln!(
        out,
        "trace {trace}: {seconds:.0} simulated seconds, {requests} requests, {broken} violations"
    )?;
    Ok(outcome.violations.is_empty())
}

fn seeds(args: &Args, out: &mut impl io::Write) -> Result<bool, String> {
    let all = args.first..args.first.saturating_add(args.seeds);
    let runs = all.map(|seed| {
        let replay = format!("simulate --seed {seed} --table");
        (replay, Plan::of_seed(seed))
    });
    let report = batch::run_all(runs, args.jobs, out)?;
    report.print(args.all_situations, out)
}

fn exhaust(args: &Args, name: &str, out: &mut impl io::Write) -> Result<bool, String> {
    let chosen = workloads();
    let chosen: Vec<_> = chosen
        .into_iter()
        .filter(|it| name == "all" || it.name == name)
        .collect();
    if chosen.is_empty() {
        let known: Vec<&str> = workloads().iter().map(|it| it.name).collect();
        return Err(format!(
            "no workload {name}; there are {}",
            known.join(", ")
        ));
    }
    let runs = chosen.iter().flat_map(plans);
    let report = batch::run_all(runs, args.jobs, out)?;
    report.print(false, out)
}
