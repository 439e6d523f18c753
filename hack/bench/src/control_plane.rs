//! Cost of the test control plane: start, memory and writes.

#![expect(
    clippy::cast_precision_loss,
    reason = "counts and sizes are far below what a double holds exactly"
)]

mod custom;
mod memory;
mod policies;
mod requests;
mod start;
mod watchers;

use std::time::Duration;

use bytes::Bytes;
use kube_test_control_plane::TestControlPlane;
use serde_json::Value;
use tokio::time::Instant;

use self::requests::{
    CREATED, CREATES, PODS, count_bytes, create_maps, create_pods, get, map_bodies, open,
    pod_bodies,
};
use crate::report::{Report, Row};
use crate::timing::{microseconds, milliseconds, runtime};

pub(crate) use memory::{CHILD as MEMORY_CHILD, child as memory_child};
pub(crate) use start::{CHILD as START_CHILD, IDLE, child as start_child, idle};

/// Number of listed pods.
const LISTED: usize = 10_000;
/// Number of lists; the fastest one counts.
const LISTS: usize = 10;
/// Measures all rows.
pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    let runtime = runtime()?;
    start::measure(report)?;
    report.add(Row {
        what: "control plane: create a config map of 1 kB, 16 in flight (aim: 200 µs)".to_owned(),
        value: runtime.block_on(creates())?,
        baseline: read_and_write(),
        baseline_name: "read and write its JSON",
        unit: "µs",
        bound: None,
    });
    runtime.block_on(custom::measure(report))?;
    runtime.block_on(policies::measure(report))?;
    runtime.block_on(watchers::measure(report))?;
    memory::measure(report)?;
    runtime.block_on(list(report))
}

/// Measures the rows about admission policies.
pub(crate) fn measure_policies(report: &mut Report) -> anyhow::Result<()> {
    runtime()?.block_on(policies::measure(report))
}

/// Microseconds per create.
async fn creates() -> anyhow::Result<f64> {
    let mut fastest = Duration::MAX;
    for _ in 0..CREATES {
        let plane = TestControlPlane::builder().start().await;
        let start = Instant::now();
        create_maps(plane.server(), "map", CREATED).await?;
        fastest = fastest.min(start.elapsed());
        plane.stop().await;
    }
    Ok(fastest.as_secs_f64() * 1e6 / CREATED as f64)
}

/// Microseconds for reading and writing the JSON of such a config map.
fn read_and_write() -> f64 {
    let bodies: Vec<Bytes> = map_bodies("map", 1).collect();
    microseconds(|| {
        for body in &bodies {
            let value: Value = serde_json::from_slice(body).unwrap_or_default();
            std::hint::black_box(value.to_string());
        }
    })
}

/// Lists pods, read piece by piece and joined in memory.
async fn list(report: &mut Report) -> anyhow::Result<()> {
    let plane = TestControlPlane::builder().start().await;
    let server = plane.server();
    create_pods(server, &pod_bodies(LISTED)?).await?;
    let (mut read, mut joined, mut copied) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for _ in 0..LISTS {
        let start = Instant::now();
        let size = count_bytes(open(server, PODS).await?).await?;
        read = read.min(start.elapsed());
        anyhow::ensure!(size > LISTED * 1_000, "the list is too short");
        let start = Instant::now();
        let bytes = get(server, PODS).await?;
        joined = joined.min(start.elapsed());
        anyhow::ensure!(bytes.len() == size, "the list has changed");
        let start = Instant::now();
        let copy = Bytes::copy_from_slice(&bytes);
        copied = copied.min(start.elapsed());
        drop(copy);
    }
    plane.stop().await;
    for (how, time) in [("read piece by piece", read), ("joined in memory", joined)] {
        report.add(Row {
            what: format!("control plane: list of {LISTED} pods, {how} (aim: 100 ms)"),
            value: milliseconds(time),
            baseline: milliseconds(copied),
            baseline_name: "copy as many bytes",
            unit: "ms",
            bound: None,
        });
    }
    Ok(())
}
