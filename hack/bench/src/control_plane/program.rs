//! The program: when it is ready, and what it needs while it does nothing.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use tokio::time::Instant;

use super::{aimed, milliseconds};
use crate::memory::resident_bytes_of;
use crate::report::{Bound, Report, Row};

/// The program's name; it stands beside this one.
const PROGRAM: &str = "kube-test-control-plane";
/// The most that its start should take, in milliseconds.
const READY_AIM: f64 = 150.0;
/// The most memory that it may need, in bytes.
const RESIDENT_MAX: f64 = 25.0 * 1024.0 * 1024.0;
/// How often the start is timed; the fastest one counts.
const STARTS: usize = 5;

/// Starts it a few times.
pub(super) fn measure(report: &mut Report) -> anyhow::Result<()> {
    let own = std::env::current_exe().context("find this program")?;
    let program = own.with_file_name(PROGRAM);
    ensure!(
        program.is_file(),
        "{} is missing: make bench builds it",
        program.display()
    );
    let (mut fastest, mut resident) = (f64::MAX, 0.0_f64);
    for _ in 0..STARTS {
        let start = Instant::now();
        let mut child = Command::new(&program)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {PROGRAM}"))?;
        let mut line = String::new();
        let output = child.stdout.take().context("the program has no output")?;
        let said = BufReader::new(output).read_line(&mut line);
        fastest = fastest.min(milliseconds(start.elapsed()));
        let bytes = resident_bytes_of(child.id());
        child.kill().with_context(|| format!("end {PROGRAM}"))?;
        child.wait()?;
        said.with_context(|| format!("read what {PROGRAM} says"))?;
        ensure!(line.starts_with("ready "), "{PROGRAM} is not ready: {line}");
        resident = resident.max(bytes? as f64);
    }
    report.add(aimed(
        "control plane: ready as a program, with every actor",
        fastest,
        "ms",
        READY_AIM,
    ));
    report.add(Row {
        what: "control plane: resident memory of the empty program".to_owned(),
        value: resident,
        baseline: RESIDENT_MAX,
        baseline_name: "the bound",
        unit: "bytes",
        bound: Some(Bound::Value(RESIDENT_MAX)),
    });
    Ok(())
}
