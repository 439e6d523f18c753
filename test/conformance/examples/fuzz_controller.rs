//! Fuzzer that shows the real controller odd objects alongside ordinary sets, in lists and in
//! watches. It fails at the first panic, hang, or ordinary set that isn't served.
//!
//! `FUZZ_SECONDS` is the duration (600). `FUZZ_SEED` is the seed of the first round, random by
//! default; each round has its own control plane, and its seed determines everything that is
//! stored. `FUZZ_ROUNDS=1` stops after one round, and `FUZZ_VERBOSE=1` prints each odd object
//! first.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the program's output"
)]
#![expect(clippy::disallowed_methods, reason = "it runs for a time")]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use conformance::odd::fuzz::{Panics, Round};
use rand::TryRng as _;
use rand::rngs::SysRng;

/// Time limit for a round, which normally takes a second or less.
const ROUND_MAX: Duration = Duration::from_secs(120);
/// Maximum length of an object in a failure message.
const SHOWN_MAX: usize = 2_000;

struct Settings {
    seed: u64,
    time: Duration,
    rounds: u64,
    verbose: bool,
    keep_going: bool,
}

impl Settings {
    fn from_environment() -> Self {
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        Self {
            seed: number("FUZZ_SEED")
                .unwrap_or_else(|| u64::from(SysRng.try_next_u32().unwrap_or_default())),
            time: Duration::from_secs(number("FUZZ_SECONDS").unwrap_or(600)),
            rounds: number("FUZZ_ROUNDS").unwrap_or(u64::MAX),
            verbose: number("FUZZ_VERBOSE").is_some(),
            keep_going: number("FUZZ_KEEP_GOING").is_some(),
        }
    }
}

fn main() -> ExitCode {
    let settings = Settings::from_environment();
    // Stack exhaustion kills the process, so a parent process reports the round.
    if std::env::var_os("FUZZ_CHILD").is_some() {
        return run(&settings);
    }
    match watch_over(&settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err((seed, why)) => {
            eprintln!(
                "{why}\nto see it again: FUZZ_SEED={seed} FUZZ_ROUNDS=1 FUZZ_VERBOSE=1 make fuzz-controller"
            );
            ExitCode::FAILURE
        }
    }
}

/// Runs the rounds; prints the seed of each before it starts.
fn run(settings: &Settings) -> ExitCode {
    let panics = Panics::watch();
    let started = Instant::now();
    let (mut rounds, mut failures) = (0_u64, 0_u64);
    while rounds < settings.rounds && started.elapsed() < settings.time {
        let seed = settings.seed.wrapping_add(rounds);
        println!("{seed}");
        if let Err(failure) = run_round(seed, rounds, settings.verbose, &panics) {
            eprintln!("{failure}");
            failures += 1;
            if !settings.keep_going {
                break;
            }
        }
        rounds += 1;
    }
    eprintln!("{rounds} rounds, {failures} failures");
    if failures == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn run_round(seed: u64, number: u64, verbose: bool, panics: &Panics) -> Result<(), String> {
    let round = Round::new(seed);
    let objects: Vec<String> = round.objects().collect();
    if verbose {
        eprintln!("{}", objects.join("\n"));
    }
    round.run(panics).map_err(|error| {
        let shown = objects.iter().map(|object| {
            let end = object.len().min(SHOWN_MAX);
            format!("\n  {}", &object[..end])
        });
        let shown: String = shown.collect();
        format!("seed {seed}, round {number}: {error:#}{shown}")
    })
}

/// Runs the rounds in a child process. An error has the seed and the failure.
fn watch_over(settings: &Settings) -> Result<(), (u64, String)> {
    let seed = settings.seed;
    eprintln!("seed {seed}, {} s", settings.time.as_secs());
    let mut child = spawn(settings).map_err(|err| (seed, format!("start the fuzzer: {err}")))?;
    let (begun, rounds) = mpsc::channel();
    let output = child.stdout.take();
    std::thread::spawn(move || {
        let lines = output.map(|output| BufReader::new(output).lines());
        for line in lines.into_iter().flatten().map_while(Result::ok) {
            if begun.send(line).is_err() {
                return;
            }
        }
    });
    let mut current = seed;
    loop {
        match rounds.recv_timeout(ROUND_MAX) {
            Ok(line) => current = line.parse().unwrap_or(current),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err((current, "a round does not finish".to_owned()));
            }
        }
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err((current, format!("the fuzzer ended with {status}"))),
        Err(err) => Err((current, format!("wait for the fuzzer: {err}"))),
    }
}

fn spawn(settings: &Settings) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .env("FUZZ_CHILD", "1")
        .env("FUZZ_SEED", settings.seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
}
