//! Scaling up and down, ordered and parallel.

use std::collections::BTreeSet;
use std::pin::pin;

use e2e::manifests::{plain, probed};
use e2e::{Cluster, SET_PATIENCE, StatefulSet, is_ready};
use futures::{Stream, StreamExt as _};
use integration::stateful_sets::name;
use kube::core::WatchEvent;
use serde_json::Value;
use statefulset_client::resource::PODS;

/// Watches the pods of a set from now on.
async fn watch(ss: &StatefulSet<'_>, cluster: &Cluster) -> impl Stream<Item = WatchEvent<Value>> {
    let list = cluster.space().list_object(&PODS, ss.selector()).await;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    cluster.space().watch(&PODS, ss.selector(), version).await
}

/// Reads a watch until the selected pods have appeared in this order; others may appear in between.
async fn comes_in_order(
    events: impl Stream<Item = WatchEvent<Value>>,
    pick: fn(WatchEvent<Value>) -> Option<Value>,
    order: &[&str],
) {
    let mut events = pin!(events);
    let all = async {
        for wanted in order {
            loop {
                let event = events.next().await.expect("the watch goes on");
                if pick(event).is_some_and(|pod| name(&pod) == *wanted) {
                    break;
                }
            }
        }
    };
    let in_time = tokio::time::timeout(SET_PATIENCE.0, all).await;
    assert!(
        in_time.is_ok(),
        "the pods did not appear in the order {order:?}"
    );
}

fn added(event: WatchEvent<Value>) -> Option<Value> {
    match event {
        WatchEvent::Added(pod) => Some(pod),
        _ => None,
    }
}

fn deleted(event: WatchEvent<Value>) -> Option<Value> {
    match event {
        WatchEvent::Deleted(pod) => Some(pod),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn test_scaling_should_happen_in_predictable_order_and_halt_if_any_stateful_pod_is_unhealthy()
{
    let cluster = Cluster::start("in-order").await;
    let list = cluster.space().list_object(&PODS, "").await;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let ss = cluster.create(&probed(plain("ss", 1))).await;
    let events = cluster.space().watch(&PODS, ss.selector(), version).await;
    ss.until_ready(1).await;

    ss.set_probes(false).await;
    ss.until_counts(&[("readyReplicas", 0)]).await;
    ss.update_replicas(3).await;
    ss.stays_at(1).await;
    ss.set_probes(true).await;
    ss.until_ready(3).await;
    comes_in_order(events, added, &["ss-0", "ss-1", "ss-2"]).await;

    let events = watch(&ss, &cluster).await;
    ss.set_probes(false).await;
    ss.until_counts(&[("readyReplicas", 0)]).await;
    ss.until_running(3, 0).await;
    ss.update_replicas(0).await;
    ss.stays_at(3).await;
    ss.set_probes(true).await;
    ss.scale(0).await;
    comes_in_order(events, deleted, &["ss-2", "ss-1", "ss-0"]).await;
    cluster.finish().await;
}

/// Upstream's check of the number of unready pods can't fail; here that number must be reached.
#[tokio::test(start_paused = true)]
async fn test_burst_scaling_should_run_to_completion_even_with_unhealthy_pods() {
    let cluster = Cluster::start("burst").await;
    let mut set = probed(plain("ss", 1));
    set["spec"]["podManagementPolicy"] = "Parallel".into();
    let ss = cluster.create(&set).await;
    ss.until_ready(1).await;

    // Scales the set while none of its existing pods is ready.
    let scale_unready = async |replicas: usize| {
        let before = names_of(&ss.pods().await);
        ss.update_replicas(replicas).await;
        let scaled = async || {
            let pods = ss.pods().await;
            for pod in pods.iter().filter(|pod| before.contains(name(pod))) {
                assert!(!is_ready(pod), "{} is ready", name(pod));
            }
            (pods.len() == replicas).then_some(())
        };
        let what = format!("{replicas} pods");
        SET_PATIENCE.until(&what, scaled).await;
    };

    ss.set_probes(false).await;
    ss.until_counts(&[("readyReplicas", 0)]).await;
    scale_unready(3).await;
    ss.set_probes(true).await;
    ss.until_ready(3).await;

    ss.set_probes(false).await;
    ss.until_counts(&[("readyReplicas", 0)]).await;
    ss.until_running(3, 0).await;
    scale_unready(0).await;
    ss.until_counts(&[("replicas", 0)]).await;
    cluster.finish().await;
}

fn names_of(pods: &[Value]) -> BTreeSet<String> {
    pods.iter().map(|pod| name(pod).to_owned()).collect()
}
