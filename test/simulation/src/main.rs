//! The program behind `make simulate`.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use simulation::judges;
use simulation::plan::Plan;
use simulation::run::run;
use simulation::table::table;

/// Simulates the controller under faults, one run per seed.
#[derive(Parser)]
struct Args {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// Number of seeds.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// Prints what happened in each run.
    #[arg(long)]
    table: bool,
    /// With --table: also reads and syncs.
    #[arg(long)]
    reads: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let began = Instant::now();
    let (mut simulated, mut failed) = (0.0, 0);
    for seed in args.first..args.first + args.seeds {
        let plan = Plan::of_seed(seed);
        let record = run(&plan);
        simulated += record.length.as_secs_f64();
        if args.table {
            print!("{}", table(&record, args.reads));
        }
        let verdict = judges::judge(&plan, &record);
        if !verdict.violations.is_empty() {
            failed += 1;
            println!("seed {seed} (trace {:016x}):", record.trace);
            for violation in verdict.violations.iter().take(5) {
                println!("  {violation}");
            }
        }
    }
    let wall = began.elapsed().as_secs_f64();
    println!(
        "{} seeds, {failed} failed, {simulated:.0} simulated seconds in {wall:.1} s: {:.0} a second",
        args.seeds,
        simulated / wall
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
