//! Costs in instructions, counted by callgrind.

mod event;
mod message;
mod settings;
mod work;
mod writing;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context as _, bail, ensure};

use crate::report::{Bound, Report, Row};
use settings::REPETITIONS;
use work::Work;

/// Argument for the child process that only works.
pub(crate) const CHILD: &str = "count-work";
/// Maximum influence of other sets' pods on the cost of a sync.
const OTHERS_EFFECT_MAX: f64 = 0.10;
/// Numbers of other sets' pods; the first is the baseline.
const OTHERS: [usize; 4] = [100, 1_000, 10_000, 50_000];
/// Numbers of the set's pods; the first is the baseline.
const OWN: [usize; 3] = [5, 50, 500];
/// Largest ratio to the recorded count.
const GROWTH_MAX: f64 = 1.05;
/// The recorded counts by work.
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.json");
/// Unit of the rows.
const UNIT: &str = "instructions";

/// Checks that valgrind is installed.
///
/// # Errors
///
/// Valgrind is missing.
pub(crate) fn require_valgrind() -> anyhow::Result<()> {
    let found = Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    match found {
        Ok(status) if status.success() => Ok(()),
        _ => bail!("valgrind is missing: install it, for example with apt-get install valgrind"),
    }
}

/// Counts the instructions of a sync for growing numbers of other pods, and of the set's pods.
pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    let settled = |own, others| count(Work::Settled { own, others });
    let base = settled(OWN[0], OTHERS[0])?;
    for others in OTHERS {
        let value = if others == OTHERS[0] {
            base
        } else {
            settled(OWN[0], others)?
        };
        report.add(Row {
            what: format!("sync of a settled set of 5 pods among {others} others"),
            value,
            baseline: base,
            baseline_name: "among 100 others",
            unit: UNIT,
            bound: Some(Bound::RatioFromOne(OTHERS_EFFECT_MAX)),
        });
    }
    for own in OWN {
        let total = if own == OWN[0] {
            base
        } else {
            settled(own, OTHERS[0])?
        };
        report.add(Row {
            what: format!("the same per pod, in a set of {own} pods"),
            value: total / f64::from(u32::try_from(own)?),
            baseline: base / f64::from(u32::try_from(OWN[0])?),
            baseline_name: "in a set of 5",
            unit: UNIT,
            bound: None,
        });
    }
    Ok(())
}

/// Counts every piece of work next to its recorded count.
///
/// # Errors
///
/// The recorded counts can't be read, or one is missing.
pub(crate) fn compare(report: &mut Report) -> anyhow::Result<()> {
    require_valgrind()?;
    let text = fs::read_to_string(RECORDED).with_context(|| format!("read {RECORDED}"))?;
    let recorded: BTreeMap<String, f64> =
        serde_json::from_str(&text).with_context(|| format!("decode {RECORDED}"))?;
    for work in Work::ALL {
        let what = work.to_string();
        let baseline = recorded.get(&what);
        let baseline = *baseline.with_context(|| format!("{RECORDED} has no count of: {what}"))?;
        report.add(Row {
            what,
            value: count(work)?,
            baseline,
            baseline_name: "recorded",
            unit: UNIT,
            bound: Some(Bound::RatioAtMost(GROWTH_MAX)),
        });
    }
    Ok(())
}

/// Counts every piece of work and records the counts.
///
/// # Errors
///
/// The file can't be written.
pub(crate) fn record() -> anyhow::Result<()> {
    require_valgrind()?;
    let mut counts = BTreeMap::new();
    for work in Work::ALL {
        counts.insert(work.to_string(), count(work)?.round());
    }
    let text = serde_json::to_string_pretty(&counts)? + "\n";
    fs::write(RECORDED, text).with_context(|| format!("write {RECORDED}"))
}

/// Counts the instructions of one repetition in a separate process.
fn count(work: Work) -> anyhow::Result<f64> {
    let folder = tempfile::tempdir().context("make a folder for callgrind's output")?;
    let out = folder.path().join("callgrind.out");
    let program = env::current_exe().context("find this program")?;
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--collect-atstart=no",
            "--toggle-collect=*measured_work*",
        ])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .args([CHILD, &work.to_string()])
        .output()
        .context("run valgrind")?;
    ensure!(
        output.status.success(),
        "{work} failed under valgrind: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(total(&out)? / f64::from(REPETITIONS))
}

/// The total in callgrind's output.
fn total(out: &Path) -> anyhow::Result<f64> {
    let text = fs::read_to_string(out).context("read callgrind's output")?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let total: f64 = total
        .context("callgrind's output has no total")?
        .trim()
        .parse()?;
    ensure!(
        total > 0.0,
        "callgrind counted no instructions: it did not find the measured function"
    );
    Ok(total)
}

/// Does the named work, first to warm up, then to be counted.
pub(crate) fn child(name: &str) -> anyhow::Result<()> {
    let work: Work = name.parse()?;
    let mut repeat = work.prepare()?;
    for _ in 0..REPETITIONS {
        ensure!(repeat(), "{work} failed");
    }
    for _ in 0..REPETITIONS {
        ensure!(measured_work(&mut *repeat), "{work} failed");
    }
    // Visible result of a manual run.
    writeln!(std::io::stdout(), "done: {work}")?;
    Ok(())
}

/// The measured function; callgrind selects it by name.
#[inline(never)]
fn measured_work(repeat: &mut dyn FnMut() -> bool) -> bool {
    repeat()
}
