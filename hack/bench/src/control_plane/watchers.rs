//! Many watches, and one without a reader.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use futures::future::try_join_all;
use http_body_util::BodyExt as _;
use kube_test_control_plane::reply::Reply;
use kube_test_control_plane::{ApiServer, TestControlPlane};
use tokio::time::Instant;

use super::requests::{MAPS, create_maps, open};
use crate::report::{Report, Row};

/// Number of watches.
const WATCHERS: usize = 1_000;
/// Number of events per watch.
const EVENTS: usize = 500;
/// Number of timed creates while a watch has no reader.
const CREATES: usize = 5_000;
/// Number of repetitions of both; the fastest ones count.
const ROUNDS: usize = 5;

/// Measures both rows.
pub(super) async fn measure(report: &mut Report) -> anyhow::Result<()> {
    let alone = delivery(1).await?;
    report.add(Row {
        what: format!("control plane: an event to each of {WATCHERS} watchers, for each watcher"),
        value: delivery(WATCHERS).await? / WATCHERS as f64,
        baseline: alone,
        baseline_name: "created and sent to the only watcher",
        unit: "µs",
        bound: None,
    });
    let (mut without, mut with) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        without = without.min(creates(false).await?);
        with = with.min(creates(true).await?);
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / CREATES as f64;
    report.add(Row {
        what: "control plane: create while a watcher never reads".to_owned(),
        value: each(with),
        baseline: each(without),
        baseline_name: "without the watcher",
        unit: "µs",
        bound: None,
    });
    Ok(())
}

/// Microseconds per event from the first create until every watch has every event.
async fn delivery(watchers: usize) -> anyhow::Result<f64> {
    let plane = TestControlPlane::builder().start().await;
    let server = plane.server();
    let mut watches = Vec::new();
    for _ in 0..watchers {
        watches.push(watch(server).await?);
    }
    let start = Instant::now();
    let seen = try_join_all(watches.into_iter().map(see_all));
    let (created, seen) = tokio::join!(create_maps(server, "map", EVENTS), seen);
    let took = start.elapsed();
    created?;
    seen?;
    plane.stop().await;
    Ok(took.as_secs_f64() * 1e6 / EVENTS as f64)
}

async fn watch(server: &ApiServer) -> anyhow::Result<Reply> {
    let revision = server.store().revision();
    open(
        server,
        &format!("{MAPS}?watch=true&resourceVersion={revision}"),
    )
    .await
}

/// Reads until every event has arrived, one line each.
async fn see_all(watch: Reply) -> anyhow::Result<()> {
    let mut body = watch.into_body();
    let mut events = 0;
    while events < EVENTS {
        let frame = body.frame().await.context("a watch ended early")?;
        let data = frame.map_err(anyhow::Error::from_boxed)?.into_data();
        let data = data.ok().context("a watch sent no data")?;
        events += data.split(|byte| *byte == b'\n').count() - 1;
    }
    ensure!(events == EVENTS, "a watch delivered {events} events");
    Ok(())
}

async fn creates(watched: bool) -> anyhow::Result<Duration> {
    let plane = TestControlPlane::builder().start().await;
    let server = plane.server();
    let watch = if watched {
        Some(watch(server).await?)
    } else {
        None
    };
    let start = Instant::now();
    create_maps(server, "map", CREATES).await?;
    let took = start.elapsed();
    drop(watch);
    plane.stop().await;
    Ok(took)
}
