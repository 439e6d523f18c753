//! The program behind `make simulate`.

mod batch;
mod child;
mod lags;
mod report;
mod shrink;

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use simulation::catalogue::{ISSUES, IssueStatus, NOT_PLAYED, scenarios};
use simulation::exhaustive::{plans, workloads};
use simulation::judges::judge;
use simulation::outcome::Outcome;
use simulation::page::page;
use simulation::plan::{self, Plan};
use simulation::regression::Regression;
use simulation::run::run;
use simulation::situations::{FENCE_SITUATIONS, OPT_IN_SITUATIONS, SITUATIONS};
use simulation::table::table;

/// A quarter of a run's time goes into small allocations, which this allocator halves.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of seeds that reach every situation.
const STANDARD_SEEDS: u64 = 1_000;

/// Simulates the controller under faults. Every run has a separate process, so it can be
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
    /// Prints the workloads' syncs, writes, duplicates, conflicts and violations at each watch lag.
    Lags,
    /// Prints how many scenarios and upstream issues the catalogue has.
    Catalogue,
    /// Runs one plan.
    Run(Run),
    /// Shrinks a plan that breaks a rule to a small one that still breaks it.
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
    /// Runs the instances behind a fence, next to a built-in controller: other plans.
    #[arg(long)]
    fence: bool,
    /// Runs plans whose sets opt in to more than upstream does.
    #[arg(long, conflicts_with = "fence")]
    opt_ins: bool,
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
    /// The printed form.
    #[arg(long, value_enum, default_value = "summary")]
    print: Print,
}

#[derive(Args)]
struct Minimize {
    #[command(flatten)]
    source: Source,
    /// The rule that stays broken, such as `R-4`; the first broken one if none.
    #[arg(long)]
    rule: Option<String>,
    /// The file for the small plan; standard output if none.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The finding of the plan, in a sentence; the result is a regression then.
    #[arg(long, value_name = "TEXT")]
    found: Option<String>,
}

/// The source of a plan.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct Source {
    /// The plan of this seed.
    #[arg(long)]
    seed: Option<u64>,
    /// The plan with a fence of this seed.
    #[arg(long)]
    fence_seed: Option<u64>,
    /// The plan with opt-ins of this seed.
    #[arg(long)]
    opt_ins_seed: Option<u64>,
    /// The plan or the regression in this file; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
}

/// The output of a run.
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
        Command::Lags => lags::print(&mut out),
        Command::Catalogue => print_catalogue(&mut out).map_err(unprinted).map(|()| true),
        Command::Run(args) => run_one(&args, &mut out),
        Command::Minimize(args) => shrink_one(&args, &mut out).map(|()| true),
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

fn print_catalogue(out: &mut impl io::Write) -> io::Result<()> {
    let played = scenarios();
    let variants: usize = played.iter().map(|it| (it.plans)().len()).sum();
    let (scenarios, rest) = (played.len(), NOT_PLAYED.len());
    writeln!(
        out,
        "{scenarios} scenarios with {variants} variants; {rest} not played"
    )?;
    let of = |status| ISSUES.iter().filter(|it| it.1 == status).count();
    writeln!(
        out,
        "{} upstream issues: {} repaired by v1.36 and here, {} behave as in v1.36, {} only here \
         repaired",
        ISSUES.len(),
        of(IssueStatus::Repaired),
        of(IssueStatus::Kept),
        of(IssueStatus::Stricter)
    )
}

/// Runs one plan. Returns true if no rule was broken.
fn run_one(args: &Run, out: &mut impl io::Write) -> Result<bool, String> {
    let plan = args.source.plan()?;
    show(args.print, &plan, out).map_err(unprinted)
}

fn shrink_one(args: &Minimize, out: &mut impl io::Write) -> Result<(), String> {
    let plan = args.source.plan()?;
    let (small, rule) = shrink::shrink(plan, args.rule.as_deref())?;
    let text = match &args.found {
        None => small.to_json(),
        Some(found) => {
            let (found, plan) = (found.clone(), small.clone());
            Regression { found, rule, plan }.to_json()
        }
    };
    let source = if let Some(file) = &args.out {
        fs::write(file, text + "\n")
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        file.display().to_string()
    } else {
        writeln!(out, "{text}").map_err(unprinted)?;
        let line = serde_json::to_string(&small).unwrap_or_default();
        format!("- <<<'{line}'")
    };
    let program = batch::program();
    writeln!(io::stderr(), "{program} run --print table --plan {source}").map_err(unprinted)
}

impl Source {
    fn plan(&self) -> Result<Plan, String> {
        match self {
            Self {
                seed: Some(seed), ..
            } => Ok(plan::of_seed(*seed)),
            Self {
                fence_seed: Some(seed),
                ..
            } => Ok(plan::of_fence_seed(*seed)),
            Self {
                opt_ins_seed: Some(seed),
                ..
            } => Ok(plan::of_opt_in_seed(*seed)),
            Self { plan, .. } => read_plan(plan.as_deref().unwrap_or(Path::new("-"))),
        }
    }
}

fn read_plan(path: &Path) -> Result<Plan, String> {
    let mut text = String::new();
    let read = if path.as_os_str() == "-" {
        io::stdin().read_to_string(&mut text).map(drop)
    } else {
        fs::read_to_string(path).map(|read| text = read)
    };
    read.map_err(|error| format!("cannot read the plan {}: {error}", path.display()))?;
    if let Ok(regression) = Regression::from_json(&text) {
        return Ok(regression.plan);
    }
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
    let (plan_of, required): (fn(u64) -> Plan, _) = if args.fence {
        (plan::of_fence_seed, FENCE_SITUATIONS)
    } else if args.opt_ins {
        (plan::of_opt_in_seed, OPT_IN_SITUATIONS)
    } else {
        (plan::of_seed, SITUATIONS)
    };
    let runs = all.map(|seed| (format!("seed {seed}"), plan_of(seed)));
    let report = batch::run_all(runs, args.jobs, out)?;
    let unreached = report.print(required, args.situations, out)?;
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
        report.print(SITUATIONS, false, out)?;
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
