//! What the test control plane promises: that a test hardly notices its start, its memory and its
//! writes.

#![expect(
    clippy::cast_precision_loss,
    reason = "counts and sizes are far below what a double holds exactly"
)]

mod memory;
mod program;
mod requests;
mod watchers;

use std::time::Duration;

use anyhow::Context as _;
use kube_test_control_plane::TestControlPlane;
use tokio::runtime::Runtime;
use tokio::time::Instant;

use self::requests::{PODS, create_maps, create_pods, get, pod_bodies};
use crate::report::{Report, Row};

pub(crate) use memory::{CHILD as MEMORY_CHILD, child as memory_child};

/// The most that a start in the process should take, in milliseconds.
const READY_AIM: f64 = 30.0;
/// The most that a create should take, in microseconds: 5,000 creates a second.
const CREATE_AIM: f64 = 200.0;
/// The most that a list of [`LISTED`] pods should take, in milliseconds.
const LIST_AIM: f64 = 100.0;
/// How many pods are listed.
const LISTED: usize = 10_000;
/// How often they are listed; the fastest one counts.
const LISTS: usize = 10;
/// How many config maps are created.
const CREATED: usize = 10_000;
/// How often a start is timed; the fastest one counts.
const STARTS: usize = 10;

/// Measures everything.
pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    let runtime = runtime()?;
    report.add(aimed(
        "control plane: ready in process",
        ready(&runtime),
        "ms",
        READY_AIM,
    ));
    program::measure(report)?;
    let created = runtime.block_on(creates())?;
    let what = "control plane: create a config map of 1 kB, 16 in flight";
    report.add(aimed(what, created, "µs", CREATE_AIM));
    runtime.block_on(watchers::measure(report))?;
    memory::measure(report)?;
    let listed = runtime.block_on(list())?;
    let what = format!("control plane: list of {LISTED} pods, as bytes");
    report.add(aimed(&what, listed, "ms", LIST_AIM));
    Ok(())
}

/// One thread, as most tests have.
fn runtime() -> anyhow::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().context("start a runtime")
}

/// A figure beside what it should be at most.
fn aimed(what: &str, value: f64, unit: &'static str, aim: f64) -> Row {
    Row {
        what: what.to_owned(),
        value,
        baseline: aim,
        baseline_name: "the aim",
        unit,
        bound: None,
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn ready(runtime: &Runtime) -> f64 {
    let starts = (0..STARTS).map(|_| {
        runtime.block_on(async {
            let start = Instant::now();
            let plane = TestControlPlane::builder().start().await;
            let took = start.elapsed();
            plane.stop().await;
            took
        })
    });
    milliseconds(starts.min().unwrap_or_default())
}

/// The microseconds of a create.
async fn creates() -> anyhow::Result<f64> {
    let plane = TestControlPlane::builder().start().await;
    let start = Instant::now();
    create_maps(plane.server(), "map", CREATED).await?;
    let took = start.elapsed();
    plane.stop().await;
    Ok(took.as_secs_f64() * 1e6 / CREATED as f64)
}

/// The milliseconds of a list.
async fn list() -> anyhow::Result<f64> {
    let plane = TestControlPlane::builder().start().await;
    create_pods(plane.server(), &pod_bodies(LISTED)?).await?;
    let mut fastest = Duration::MAX;
    for _ in 0..LISTS {
        let start = Instant::now();
        let bytes = get(plane.server(), PODS).await?;
        fastest = fastest.min(start.elapsed());
        anyhow::ensure!(bytes.len() > LISTED * 1_000, "the list is too short");
    }
    plane.stop().await;
    Ok(milliseconds(fastest))
}
