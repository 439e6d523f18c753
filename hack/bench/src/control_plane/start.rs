//! Start times of a control plane, in process and as a program.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use kube_apimachinery::schema;
use kube_test_control_plane::TestControlPlane;
use tokio::time::Instant;

use crate::memory::resident_bytes_of;
use crate::report::{Bound, Report, Row};
use crate::timing::{milliseconds, runtime};

/// Argument for the child process that only starts control planes.
pub(crate) const CHILD: &str = "start-control-plane";
/// Argument for the child process that only prints a line.
pub(crate) const IDLE: &str = "do-nothing";
/// Name of the program, in the folder of this one.
const PROGRAM: &str = "kube-test-control-plane";
/// Number of starts; the fastest one counts.
const STARTS: usize = 10;
/// Maximum memory of the program, in bytes.
const RESIDENT_MAX: f64 = 25.0 * 1024.0 * 1024.0;

/// Measures all starts.
pub(super) fn measure(report: &mut Report) -> anyhow::Result<()> {
    in_process(report)?;
    as_program(report)
}

/// Milliseconds of a process's first start and of its fastest later one.
struct Starts {
    types: f64,
    first: f64,
    next: f64,
}

fn in_process(report: &mut Report) -> anyhow::Result<()> {
    let own = std::env::current_exe().context("find this program")?;
    let starts: Vec<Starts> = (0..STARTS)
        .map(|_| starts_of_a_process(&own))
        .collect::<Result<_, _>>()?;
    let fastest = |time: fn(&Starts) -> f64| starts.iter().map(time).fold(f64::MAX, f64::min);
    let first = fastest(|starts| starts.first);
    report.add(Row {
        what: "control plane: ready in process, the first time (aim: 30 ms)".to_owned(),
        value: first,
        baseline: fastest(|starts| starts.next),
        baseline_name: "every other time",
        unit: "ms",
        bound: None,
    });
    report.add(Row {
        what: "control plane: indexing the table of types, once in a process".to_owned(),
        value: fastest(|starts| starts.types),
        baseline: first,
        baseline_name: "all of the first start",
        unit: "ms",
        bound: None,
    });
    Ok(())
}

fn starts_of_a_process(own: &Path) -> anyhow::Result<Starts> {
    let output = Command::new(own).arg(CHILD).output();
    let output = output.context("run a child")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cannot start: {errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    let times: Vec<f64> = text
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let [types, first, next] = times[..] else {
        anyhow::bail!("unexpected output of the child: {text}");
    };
    Ok(Starts { types, first, next })
}

/// Starts control planes, and prints the times of the table of types, of the first start including
/// it, and of the fastest later start.
pub(crate) fn child() -> anyhow::Result<()> {
    let runtime = runtime()?;
    let begun = Instant::now();
    ensure!(schema::is_known("Pod", "spec"), "pods have a spec");
    let types = begun.elapsed();
    let start = || {
        runtime.block_on(async {
            let begun = Instant::now();
            let plane = TestControlPlane::builder().start().await;
            let took = begun.elapsed();
            plane.stop().await;
            took
        })
    };
    let first = types + start();
    let next = (0..STARTS).map(|_| start()).min().unwrap_or_default();
    let [types, first, next] = [types, first, next].map(milliseconds);
    writeln!(std::io::stdout(), "{types} {first} {next}")?;
    Ok(())
}

/// Prints a line, and waits to be killed.
pub(crate) fn idle() -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "ready")?;
    std::io::stdin().lines().for_each(drop);
    Ok(())
}

fn as_program(report: &mut Report) -> anyhow::Result<()> {
    let own = std::env::current_exe().context("find this program")?;
    let program = own.with_file_name(PROGRAM);
    ensure!(
        program.is_file(),
        "{} is missing: make bench builds it",
        program.display()
    );
    let (mut fastest, mut idle) = (Duration::MAX, Duration::MAX);
    let mut resident = 0;
    for _ in 0..STARTS {
        let started = Started::new(Command::new(&own).arg(IDLE))?;
        idle = idle.min(started.took);
        started.end()?;
        let started = Started::new(&mut Command::new(&program))?;
        fastest = fastest.min(started.took);
        resident = resident.max(resident_bytes_of(started.child.id())?);
        started.end()?;
    }
    report.add(Row {
        what: "control plane: ready as a program, with every actor (aim: 150 ms)".to_owned(),
        value: milliseconds(fastest),
        baseline: milliseconds(idle),
        baseline_name: "a program that does nothing",
        unit: "ms",
        bound: None,
    });
    report.add(Row {
        what: "control plane: resident memory of the empty program".to_owned(),
        value: resident as f64,
        baseline: RESIDENT_MAX,
        baseline_name: "the bound",
        unit: "bytes",
        bound: Some(Bound::Value(RESIDENT_MAX)),
    });
    Ok(())
}

/// A program after its line `ready`.
struct Started {
    child: Child,
    took: Duration,
}

impl Started {
    fn new(command: &mut Command) -> anyhow::Result<Self> {
        let begun = Instant::now();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {command:?}"))?;
        let mut line = String::new();
        let output = child.stdout.take().context("the program has no output")?;
        let said = BufReader::new(output).read_line(&mut line);
        let started = Self {
            child,
            took: begun.elapsed(),
        };
        if said.is_err() || !line.starts_with("ready") {
            started.end()?;
            anyhow::bail!("{command:?} is not ready: {line}");
        }
        Ok(started)
    }

    fn end(mut self) -> anyhow::Result<()> {
        self.child.kill().context("kill a program")?;
        self.child.wait()?;
        Ok(())
    }
}
