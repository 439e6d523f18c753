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

/// Argument for the child process that only syncs a set.
pub(crate) const CHILD: &str = "sync-settled";
/// Maximum influence of other sets' pods on the cost of a sync.
const OTHERS_MATTER_MOST: f64 = 0.10;
/// Numbers of other sets' pods; the first is the baseline.
const OTHERS: [usize; 4] = [100, 1_000, 10_000, 50_000];
/// Warm-up syncs, and counted syncs. The cost of an allocation depends on the state of the heap, so
/// a single sync would also measure the heap left by the setup.
const SYNCS: u32 = 20;
/// Numbers of the set's pods; the first is the baseline.
const OWN: [usize; 3] = [5, 50, 500];

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

/// Counts the instructions of one sync in a separate process.
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
        "callgrind counted no instructions: it did not find the measured function"
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
        ensure!(settled, "the sync failed");
    }
    // Visible result of a manual run.
    writeln!(std::io::stdout(), "synced {}", world.key)?;
    Ok(())
}

/// The measured function; callgrind selects it by name.
#[inline(never)]
fn measured_sync(runtime: &Runtime, syncer: &SetSyncer, key: &ObjectKey) -> bool {
    runtime.block_on(syncer.sync(key)).is_ok()
}
