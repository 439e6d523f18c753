//! Fuzzes the server in process: sends recorded requests with randomly changed bodies, queries,
//! paths and headers. Ends with an error at the first panic, hang, undocumented server error, or
//! response that is neither an object nor a Status.
//!
//! `FUZZ_SECONDS` sets the duration (600). `FUZZ_SEED` sets the seed of the first session, by
//! default random; each session has a new server, and its seed determines all its requests.
//! `FUZZ_SESSIONS=1` stops after that session, and `FUZZ_VERBOSE=1` prints each request before it
//! is sent. `FUZZ_KEEP_GOING=1` continues with the next session after a failure that leaves the
//! process alive.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the program's answer"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "it runs for a limited time and measures requests"
)]

mod check;
mod corpus;
mod mutate;
mod patches;
mod requests;
mod session;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rand::TryRng as _;
use rand::rngs::SysRng;

use crate::corpus::Corpus;

/// Timeout of a session. It normally takes a second or less.
const SESSION_MAX: Duration = Duration::from_secs(120);

/// Settings from the environment.
struct Settings {
    seed: u64,
    time: Duration,
    sessions: u64,
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
            sessions: number("FUZZ_SESSIONS").unwrap_or(u64::MAX),
            verbose: number("FUZZ_VERBOSE").is_some(),
            keep_going: number("FUZZ_KEEP_GOING").is_some(),
        }
    }
}

fn main() -> ExitCode {
    let settings = Settings::from_environment();
    // A stack overflow kills the process, so the parent process reports the session.
    if std::env::var_os("FUZZ_CHILD").is_some() {
        return run(&settings);
    }
    match watch_over(&settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err((seed, why)) => {
            eprintln!(
                "{why}\nto reproduce: FUZZ_SEED={seed} FUZZ_SESSIONS=1 FUZZ_VERBOSE=1 make fuzz"
            );
            ExitCode::FAILURE
        }
    }
}

/// Runs the sessions and prints the seed of each.
fn run(settings: &Settings) -> ExitCode {
    let corpus = Corpus::read();
    let started = Instant::now();
    let (mut requests, mut failures) = (0, 0);
    let seeds = (0..settings.sessions).map(|i| settings.seed.wrapping_add(i));
    for (sessions, seed) in seeds.enumerate() {
        if started.elapsed() >= settings.time {
            eprintln!("{sessions} sessions, {requests} requests, {failures} failures");
            break;
        }
        println!("{seed}");
        match session::run(&corpus, seed, settings.verbose) {
            Ok(sent) => requests += sent,
            Err(failure) => {
                eprintln!("{failure}\n");
                failures += 1;
                if !settings.keep_going {
                    break;
                }
            }
        }
    }
    if failures == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs the sessions in a child process. An error has the seed and the problem.
fn watch_over(settings: &Settings) -> Result<(), (u64, String)> {
    let seed = settings.seed;
    eprintln!("seed {seed}, {} s", settings.time.as_secs());
    let mut child = spawn(settings).map_err(|err| (seed, format!("starting the fuzzer: {err}")))?;
    let (begun, sessions) = mpsc::channel();
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
        match sessions.recv_timeout(SESSION_MAX) {
            Ok(line) => current = line.parse().unwrap_or(current),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err((current, "a session timed out".to_owned()));
            }
        }
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err((current, format!("the fuzzer ended with {status}"))),
        Err(err) => Err((current, format!("waiting for the fuzzer: {err}"))),
    }
}

fn spawn(settings: &Settings) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .env("FUZZ_CHILD", "1")
        .env("FUZZ_SEED", settings.seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
}
