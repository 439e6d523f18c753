//! Availability of pods after `minReadySeconds`.

use std::time::Duration;

use e2e::manifests::{plain, probed};
use e2e::{Cluster, StatefulSet};
use integration::stateful_sets::count;
use statefulset_client::resource::STATEFUL_SETS;
use tokio::time::Instant;

async fn set_min_ready_seconds(ss: &StatefulSet<'_>, seconds: u32) {
    ss.change(|set| set["spec"]["minReadySeconds"] = seconds.into())
        .await;
}

/// Upstream's set has no minReadySeconds, so its test checks nothing; here it is set.
#[tokio::test(start_paused = true)]
async fn test_min_ready_seconds_should_be_honored_when_enabled() {
    let cluster = Cluster::start("min-ready-seconds").await;
    let mut set = probed(plain("test-ss", 1));
    set["spec"]["minReadySeconds"] = 30.into();
    let ss = cluster.create(&set).await;
    ss.until_counts(&[("readyReplicas", 1), ("availableReplicas", 0)])
        .await;
    let ready = Instant::now();
    ss.until_counts(&[("availableReplicas", 1)]).await;
    let waited = ready.elapsed();
    let about = Duration::from_secs(28)..Duration::from_secs(40);
    assert!(about.contains(&waited), "available after {waited:?}");
    cluster.finish().await;
}

#[tokio::test(start_paused = true)]
async fn test_available_replicas_should_get_updated_accordingly_when_min_ready_seconds_is_enabled()
{
    let cluster = Cluster::start("available-replicas").await;
    let mut set = probed(plain("test-ss", 2));
    set["spec"]["minReadySeconds"] = 30.into();
    let ss = cluster.create(&set).await;
    ss.until_counts(&[("availableReplicas", 0)]).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(count(&ss.get().await, "availableReplicas"), 0);
    ss.until_counts(&[("availableReplicas", 2)]).await;

    set_min_ready_seconds(&ss, 3600).await;
    ss.until_counts(&[("availableReplicas", 0)]).await;
    set_min_ready_seconds(&ss, 0).await;
    ss.until_counts(&[("availableReplicas", 2)]).await;
    // Upstream gets the YAML from kubectl; here the server sends it.
    let space = cluster.space();
    let yaml = space
        .get_as(&STATEFUL_SETS, ss.name(), "application/yaml")
        .await;
    let line = |line: &str| line.trim() == "availableReplicas: 2";
    assert!(yaml.lines().any(line), "{yaml}");
    cluster.finish().await;
}
