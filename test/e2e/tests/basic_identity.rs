//! The parts of upstream's first e2e case that need no containers: pods are created one by one,
//! each after its predecessor is ready, with names and labels for their ordinals, and keep these
//! after a restart.
//!
//! Upstream: `should provide basic identity` of `test/e2e/apps/statefulset.go`.

use std::collections::BTreeSet;

use e2e::claims::mounted_claims;
use e2e::manifests::{paused, with_claims};
use e2e::{Cluster, StatefulSet};
use integration::stateful_sets::{name, uid};
use statefulset_client::resource::EVENTS;

/// Checks the identity labels of every pod.
async fn assert_identities(ss: &StatefulSet<'_>) {
    let pods = ss.pods().await;
    assert_eq!(pods.len(), 3);
    for (ordinal, pod) in pods.iter().enumerate() {
        let pod_name = ss.pod_name(ordinal);
        assert_eq!(name(pod), pod_name);
        let labels = &pod["metadata"]["labels"];
        assert_eq!(labels["apps.kubernetes.io/pod-index"], ordinal.to_string());
        assert_eq!(labels["statefulset.kubernetes.io/pod-name"], pod_name);
        assert_eq!(pod["spec"]["hostname"], pod_name);
        assert_eq!(pod["spec"]["subdomain"], "test");
    }
}

#[tokio::test(start_paused = true)]
async fn pods_keep_their_identities_after_a_restart() {
    let cluster = Cluster::start("basic-identity").await;
    let ss = cluster.create(&paused(with_claims("ss", 3))).await;
    ss.saturate().await;
    let set = ss.get().await;
    assert_eq!(set["spec"]["serviceName"], "test");
    assert_identities(&ss).await;
    let claims = mounted_claims(&ss).await;
    assert_eq!(claims.len(), 3);

    ss.scale(0).await;
    ss.until_counts(&[("replicas", 0)]).await;
    ss.update_replicas(3).await;
    // The files that resumed them are on their volumes.
    ss.until_ready(3).await;
    assert_identities(&ss).await;
    assert_eq!(mounted_claims(&ss).await, claims);

    // Events report each creation.
    let events = cluster.space().list(&EVENTS, "").await;
    let of_set = events
        .iter()
        .filter(|event| event["involvedObject"]["uid"] == uid(&set));
    let reasons: BTreeSet<&str> = of_set
        .filter_map(|event| event["reason"].as_str())
        .collect();
    assert_eq!(reasons, ["SuccessfulCreate", "SuccessfulDelete"].into());
    cluster.finish().await;
}
