//! Reproducible histories: the same seed gives the same history.

use std::time::Duration;

use crate::support::{Plane, is_ready, pod};
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{
    ActorsConfig, Crash, Delay, Flap, KubeletConfig, PodBehaviour,
};
use serde_json::json;

/// Returns every version of every object in a control plane with random crashes, flapping,
/// evictions and deletions of pods.
async fn history(seed: u64) -> Vec<String> {
    let range = |from, to| Delay::between(Duration::from_millis(from), Duration::from_millis(to));
    let behaviour = PodBehaviour::default()
        .start_delay(range(0, 3000))
        .ready_delay(range(100, 9000))
        .stop_delay(range(0, 60_000))
        .crash(Crash::default().after(range(1000, 60_000)).times(4))
        .flap(
            Flap::default()
                .ready_for(range(1000, 20_000))
                .unready_for(range(500, 5000)),
        );
    let actors = ActorsConfig::all().kubelet(KubeletConfig::new(behaviour));
    let builder = TestControlPlane::builder().seed(seed).actors(actors);
    let plane = Plane::new(builder.start().await);
    let path = "/api/v1/namespaces/default/pods";
    for i in 0..6 {
        let mut body = pod(&format!("p-{i}"));
        body["spec"]["terminationGracePeriodSeconds"] = json!(20);
        plane.create(path, &body).await;
    }
    tokio::time::sleep(Duration::from_secs(120)).await;
    plane.0.nodes().lose("node-1").await;
    for i in 0..3 {
        let pods = plane.0.pods();
        pods.delete("default", &format!("p-{i}"), None)
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(7)).await;
    }
    plane.0.nodes().delete("node-1").await.unwrap();
    tokio::time::sleep(Duration::from_secs(300)).await;
    let (_, events) = plane
        .0
        .server()
        .store()
        .events_after(0, 100_000)
        .unwrap_or_else(|oldest| {
            plane
                .0
                .server()
                .store()
                .events_after(oldest.oldest, 100_000)
                .unwrap()
        });
    let text = |object: &[u8]| String::from_utf8_lossy(object).into_owned();
    let history = events
        .iter()
        .map(|entry| text(entry.object.text()))
        .collect();
    plane.stop().await;
    history
}

#[tokio::test(start_paused = true)]
async fn same_seed_gives_the_same_history() {
    let first = history(7).await;
    assert!(first.len() > 100, "{}", first.len());
    assert_eq!(first, history(7).await);
    assert_ne!(first, history(8).await);
}

/// Returns the time that each pod took to become ready, after some other objects were created.
async fn times(others: usize) -> Vec<Duration> {
    let range = Delay::between(Duration::ZERO, Duration::from_secs(3600));
    let behaviour = PodBehaviour::default()
        .start_delay(range)
        .ready_delay(range);
    let builder = TestControlPlane::builder().seed(7);
    let plane = builder.kubelet(KubeletConfig::new(behaviour)).start().await;
    let plane = Plane::new(plane);
    for i in 0..others {
        let map = json!({"metadata": {"name": format!("m-{i}")}});
        let path = "/api/v1/namespaces/default/configmaps";
        plane.create(path, &map).await;
        plane.code("/api/v1/pods?watch=1&resourceVersion=0").await;
    }
    let path = "/api/v1/namespaces/default/pods";
    for i in 0..5 {
        plane.create(path, &pod(&format!("p-{i}"))).await;
    }
    let start = tokio::time::Instant::now();
    let mut times = Vec::new();
    for i in 0..5 {
        let path = format!("{path}/p-{i}");
        let since = loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if is_ready(&plane.get(&path).await) {
                break start.elapsed();
            }
        };
        times.push(since);
    }
    plane.stop().await;
    times
}

#[tokio::test(start_paused = true)]
async fn other_clients_requests_shift_no_delay() {
    assert_eq!(times(0).await, times(3).await);
}
