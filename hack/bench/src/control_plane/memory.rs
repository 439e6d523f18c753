//! Memory of a stored pod.

use std::io::Write as _;
use std::process::Command;

use anyhow::{Context as _, ensure};
use kube_test_control_plane::TestControlPlane;

use super::requests::{PODS, create_pods, get, pod_bodies};
use crate::memory::resident_bytes;
use crate::report::{Bound, Report, Row};
use crate::timing::runtime;

/// Argument for the child process that only fills a control plane.
pub(crate) const CHILD: &str = "fill-control-plane";
/// Number of stored pods.
const STORED: usize = 10_000;
/// Maximum memory of a stored pod, as a multiple of its JSON.
const TIMES_JSON_MAX: f64 = 2.0;

/// Stores pods in a fresh process.
pub(super) fn measure(report: &mut Report) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("find this program")?;
    let output = Command::new(program).arg(CHILD).output();
    let output = output.context("run a child")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cannot store pods: {errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    let (grown, json) = text.trim().split_once(' ').context("read the child")?;
    let (grown, json): (f64, f64) = (grown.parse()?, json.parse()?);
    report.add(Row {
        what: format!("control plane: resident memory per stored pod, of {STORED}"),
        value: grown / STORED as f64,
        baseline: json / STORED as f64,
        baseline_name: "its JSON",
        unit: "bytes",
        bound: Some(Bound::RatioAtMost(TIMES_JSON_MAX)),
    });
    Ok(())
}

/// Stores pods, and prints the growth of the process and the length of their list in bytes.
pub(crate) fn child() -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let plane = TestControlPlane::builder().start().await;
        let pods = pod_bodies(STORED + 1)?;
        let (first, others) = pods.split_at(1);
        // The first pod allocates once, which must not count for the pods.
        create_pods(plane.server(), first).await?;
        let before = resident_bytes()?;
        create_pods(plane.server(), others).await?;
        let grown = resident_bytes()?.saturating_sub(before);
        let json = get(plane.server(), PODS).await?.len();
        writeln!(std::io::stdout(), "{grown} {json}")?;
        plane.stop().await;
        Ok(())
    })
}
