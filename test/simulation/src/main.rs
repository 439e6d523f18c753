//! The program behind `make simulate`.

mod batch;
mod report;

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use simulation::exhaustive::{plans, workloads};
use simulation::judges::judge;
use simulation::minimize::smaller;
use simulation::outcome::Outcome;
use simulation::page::page;
use simulation::plan::Plan;
use simulation::run::run;
use simulation::table::table;

/// A quarter of a run's time goes into small allocations, which this allocator halves.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of seeds that reach every situation.
const STANDARD_SEEDS: u64 = 1_000;

/// Simulates the controller under faults. Every run has a process of its own, so it can be
/// reproduced from its seed or its plan.
#[derive(Parser)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the plans of many seeds.
    Seeds(Seeds),
    /// Hits every write and every event of a workload with every fault in turn.
    Exhaust(Exhaust),
    /// Runs one plan.
    Run(Run),
    /// Finds a smaller plan that breaks the same rule, and prints it.
    Minimize(Minimize),
}

#[derive(Args)]
struct Seeds {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// Number of seeds.
    #[arg(long, default_value_t = 100)]
    count: u64,
    /// Number of runs at the same time; one for each processor if 0.
    #[arg(long, default_value_t = 0)]
    jobs: usize,
    /// Prints how often each situation was reached, and fails if one was not; fewer than 1,000
    /// seeds only print.
    #[arg(long)]
    situations: bool,
}

#[derive(Args)]
struct Exhaust {
    /// The workload; `all` for all workloads.
    workload: String,
    /// Number of runs at the same time; one for each processor if 0.
    #[arg(long, default_value_t = 0)]
    jobs: usize,
}

#[derive(Args)]
struct Run {
    #[command(flatten)]
    source: Source,
    /// What is printed.
    #[arg(long, value_enum, default_value = "summary")]
    print: Print,
}

#[derive(Args)]
struct Minimize {
    #[command(flatten)]
    source: Source,
    /// The rule, such as R-4; by default the first that the plan breaks.
    #[arg(long)]
    rule: Option<String>,
}

/// Where a plan comes from.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct Source {
    /// The plan of this seed.
    #[arg(long)]
    seed: Option<u64>,
    /// The plan in this file; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
}

/// What a run prints.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Print {
    /// Violations, and the hash of the trace.
    Summary,
    /// Also what users, faults and writes did.
    Table,
    /// Also reads and syncs.
    Requests,
    /// The page of the run, as HTML.
    Page,
    /// The outcome as JSON.
    Json,
    /// The plan as JSON; nothing runs.
    Plan,
}

fn main() -> ExitCode {
    let mut out = io::stdout().lock();
    let done = match Program::parse().command {
        Command::Seeds(args) => run_seeds(&args, &mut out),
        Command::Exhaust(args) => exhaust(&args, &mut out),
        Command::Run(args) => run_one(&args, &mut out),
        Command::Minimize(args) => minimize(&args, &mut out),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Nothing is left to tell a closed terminal.
            let _ = writeln!(io::stderr(), "simulate: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one plan. Returns true if no rule was broken.
fn run_one(args: &Run, out: &mut impl io::Write) -> Result<bool, String> {
    show(args.print, &args.source.plan()?, out).map_err(unprinted)
}

impl Source {
    fn plan(&self) -> Result<Plan, String> {
        match (self.seed, &self.plan) {
            (Some(seed), _) => Ok(Plan::of_seed(seed)),
            (None, path) => read_plan(path.as_deref().unwrap_or(Path::new("-"))),
        }
    }
}

/// Minimizes a plan and prints it. Progress goes to the standard error.
fn minimize(args: &Minimize, out: &mut impl io::Write) -> Result<bool, String> {
    let mut plan = args.source.plan()?;
    let outcome = batch::in_child(&plan)?;
    let rule = match &args.rule {
        Some(rule) => outcome
            .rules
            .get(rule)
            .ok_or(format!("the plan keeps rule {rule}")),
        None => outcome
            .rules
            .first()
            .ok_or("the plan breaks no rule".to_owned()),
    }?;
    let mut tried = 0;
    let mut breaks = |plan: &Plan| {
        tried += 1;
        // A plan that a part of the world can't run is no smaller example.
        batch::in_child(plan).is_ok_and(|outcome| outcome.rules.contains(rule))
    };
    while let Some(found) = smaller(&plan).into_iter().find(&mut breaks) {
        plan = found;
        let left = plan.steps.len();
        writeln!(io::stderr(), "{left} steps break {rule}").map_err(unprinted)?;
    }
    writeln!(io::stderr(), "{tried} plans tried").map_err(unprinted)?;
    writeln!(out, "{}", plan.to_json()).map_err(unprinted)?;
    Ok(true)
}

fn read_plan(path: &Path) -> Result<Plan, String> {
    let mut text = String::new();
    let read = if path.as_os_str() == "-" {
        io::stdin().read_to_string(&mut text).map(drop)
    } else {
        fs::read_to_string(path).map(|read| text = read)
    };
    read.map_err(|error| format!("cannot read the plan {}: {error}", path.display()))?;
    Plan::from_json(&text).map_err(|error| format!("{} is not a plan: {error}", path.display()))
}

fn show(print: Print, plan: &Plan, out: &mut impl io::Write) -> io::Result<bool> {
    if print == Print::Plan {
        return writeln!(out, "{}", plan.to_json()).map(|()| true);
    }
    let record = run(plan);
    if print == Print::Page {
        let violations = judge(plan, &record).violations;
        write!(out, "{}", page(plan, &record, &violations))?;
        return Ok(violations.is_empty());
    }
    let outcome = Outcome::judged(plan, &record);
    let passed = outcome.violations.is_empty();
    if print == Print::Json {
        return writeln!(out, "{}", serde_json::json!(outcome)).map(|()| passed);
    }
    if print != Print::Summary {
        write!(out, "{}", table(&record, print == Print::Requests))?;
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
    Ok(passed)
}

fn run_seeds(args: &Seeds, out: &mut impl io::Write) -> Result<bool, String> {
    let all = args.first..args.first.saturating_add(args.count);
    let runs = all.map(|seed| {
        let replay = format!("simulate run --seed {seed} --print table");
        (replay, Plan::of_seed(seed))
    });
    let report = batch::run_all(runs, args.jobs, out)?;
    let unreached = report.print(args.situations, out)?;
    for situation in unreached.iter().filter(|_| args.situations) {
        writeln!(out, "never reached: {situation}").map_err(unprinted)?;
    }
    let may_miss = !args.situations || args.count < STANDARD_SEEDS;
    Ok(report.passed() && (may_miss || unreached.is_empty()))
}

fn exhaust(args: &Exhaust, out: &mut impl io::Write) -> Result<bool, String> {
    let name = args.workload.as_str();
    let chosen: Vec<_> = workloads()
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
    let mut passed = true;
    for workload in &chosen {
        let report = batch::run_all(plans(workload).into_iter(), args.jobs, out)?;
        writeln!(out, "workload {}:", workload.name).map_err(unprinted)?;
        report.print(false, out)?;
        passed &= report.passed();
    }
    Ok(passed)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "map_err passes errors by value"
)]
fn unprinted(error: io::Error) -> String {
    format!("cannot print: {error}")
}
