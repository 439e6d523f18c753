//! The cost of one sync in instructions, counted by callgrind.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use kube_apimachinery::object_key::ObjectKey;
use statefulset_controller::SetSyncer;
use tokio::runtime::Runtime;

use crate::cluster::World;
use crate::report::{Bound, Report, Row};

/// The argument that makes this program sync a set and nothing else.
pub(crate) const CHILD: &str = "sync-settled";
/// How far the cost of a sync may depend on pods of other sets.
const OTHERS_MATTER_MOST: f64 = 0.10;
/// Pods of other sets, from the baseline on.
const OTHERS: [usize; 4] = [100, 1_000, 10_000, 50_000];
/// Syncs before the count and syncs that are counted. What one allocation costs depends on what was
/// freed before, so a single sync says as much about the heap that the set-up left behind.
const SYNCS: u32 = 20;
/// Pods of the set itself, from the baseline on.
const OWN: [usize; 3] = [5, 50, 500];

/// Makes sure that instructions can be counted.
///
/// # Errors
///
/// Valgrind isn't there.
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

/// Counts the instructions of a sync among more and more other pods, and with more and more own
/// ones.
pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    let base = count(OWN[0], OTHERS[0])?;
    for others in OTHERS {
        let value = if others == OTHERS[0] {
            base
        } else {
            count(OWN[0], others)?
        };
        report.add(Row {
            what: format!("sync of a settled set of 5 pods among {others} others"),
            value,
            baseline: base,
            baseline_name: "among 100 others",
            unit: "instructions",
            bound: Some(Bound::RatioFromOne(OTHERS_MATTER_MOST)),
        });
    }
    let unit = "instructions";
    for own in OWN {
        let total = if own == OWN[0] {
            base
        } else {
            count(own, OTHERS[0])?
        };
        report.add(Row {
            what: format!("the same per pod, in a set of {own} pods"),
            value: total / f64::from(u32::try_from(own)?),
            baseline: base / f64::from(u32::try_from(OWN[0])?),
            baseline_name: "in a set of 5",
            unit,
            bound: None,
        });
    }
    Ok(())
}

/// Counts the instructions of one sync in a process of its own.
fn count(own: usize, others: usize) -> anyhow::Result<f64> {
    let folder = tempfile::tempdir().context("make a folder for callgrind's output")?;
    let out = folder.path().join("callgrind.out");
    let program = std::env::current_exe().context("find this program")?;
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--collect-atstart=no",
            "--toggle-collect=*measured_sync*",
        ])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .args([CHILD, &own.to_string(), &others.to_string()])
        .output()
        .context("run valgrind")?;
    ensure!(
        output.status.success(),
        "a sync under valgrind failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(total(&out)? / f64::from(SYNCS))
}

/// The total in callgrind's output.
fn total(out: &Path) -> anyhow::Result<f64> {
    let text = std::fs::read_to_string(out).context("read callgrind's output")?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let total: f64 = total
        .context("callgrind's output has no total")?
        .trim()
        .parse()?;
    ensure!(
        total > 0.0,
        "callgrind has counted nothing: the function to count in was not found"
    );
    Ok(total)
}

/// Syncs a set of `own` pods among `others`, first to warm up, then to be counted.
pub(crate) fn child(own: &str, others: &str) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let _guard = runtime.enter();
    let world = World::new(own.parse()?, others.parse()?)?;
    runtime.block_on(world.check())?;
    for _ in 1..SYNCS {
        runtime.block_on(world.syncer.sync(&world.key))?;
    }
    for _ in 0..SYNCS {
        let settled = measured_sync(&runtime, &world.syncer, &world.key);
        ensure!(settled, "the sync has failed");
    }
    // Shows anybody who runs this by hand that something has happened.
    writeln!(std::io::stdout(), "synced {}", world.key)?;
    Ok(())
}

/// What is counted. Its name is the one that callgrind is told.
#[inline(never)]
fn measured_sync(runtime: &Runtime, syncer: &SetSyncer, key: &ObjectKey) -> bool {
    runtime.block_on(syncer.sync(key)).is_ok()
}
