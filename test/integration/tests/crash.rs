//! A controller that dies between any two of its writes, and another that goes on.

use std::collections::BTreeMap;
use std::time::Duration;

use integration::{Cluster, manifests};
use kube_test_control_plane::actors::PodBehaviour;
use kube_test_control_plane::audit::AuditEntry;
use kube_test_control_plane::route::Verb;
use serde_json::json;
use statefulset_client::resource::STATEFUL_SETS;

/// Pods that take their time, so that there are moments to die in.
fn pods() -> PodBehaviour {
    let delay = Duration::from_millis(700);
    PodBehaviour {
        start_delay: delay.into(),
        ready_delay: delay.into(),
        stop_delay: delay.into(),
        ..PodBehaviour::default()
    }
}

/// Writes that came from the controller.
fn controller_writes(cluster: &Cluster) -> Vec<AuditEntry> {
    let mut writes = cluster.writes();
    writes.retain(|entry| !entry.user_agent.starts_with("test-control-plane/"));
    writes
}

/// Lets the cluster work until the controller has made this many writes, and kills it then.
/// Returns whether it came so far.
async fn kill_after(cluster: &mut Cluster, writes: usize) -> bool {
    let mut seen = 0;
    for _ in 0..30_000 {
        let revision = cluster.plane().server().store().revision();
        if revision != seen && controller_writes(cluster).len() >= writes {
            cluster.kill_controller().await;
            return true;
        }
        seen = revision;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    false
}

/// Waits until nothing more is written, keeping the audit log.
async fn settle(cluster: &Cluster) {
    for _ in 0..200 {
        let before = cluster.writes().len();
        tokio::time::sleep(Duration::from_secs(30)).await;
        if cluster.writes().len() == before {
            return;
        }
    }
    panic!("the cluster is still busy: {:?}", cluster.write_summaries());
}

/// How often the controller created and deleted each pod.
fn pod_lives(cluster: &Cluster) -> BTreeMap<String, (usize, usize)> {
    let mut lives: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for entry in controller_writes(cluster)
        .iter()
        .filter(|entry| entry.resource == "pods")
    {
        let body = entry.body_value();
        match entry.verb {
            Verb::Create => {
                let name = body["metadata"]["name"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                lives.entry(name).or_default().0 += 1;
            }
            Verb::Delete => lives.entry(entry.name.clone()).or_default().1 += 1,
            _ => {}
        }
    }
    lives
}

async fn run(parallel: bool, writes: usize) -> bool {
    let mut cluster = Cluster::start(pods()).await;
    let mut set = manifests::web(4);
    if parallel {
        set["spec"]["podManagementPolicy"] = json!("Parallel");
    }
    set["spec"]["persistentVolumeClaimRetentionPolicy"] =
        json!({"whenScaled": "Delete", "whenDeleted": "Delete"});
    cluster.create(&STATEFUL_SETS, &set).await;
    // The set's own creation is a write without an actor, too.
    if !kill_after(&mut cluster, writes + 1).await {
        return false;
    }
    cluster.start_controller();
    settle(&cluster).await;
    let what = format!("killed after {writes} writes, parallel: {parallel}");
    let lives = pod_lives(&cluster);
    let once: BTreeMap<String, (usize, usize)> = (0..4)
        .map(|ordinal| (format!("web-{ordinal}"), (1, 0)))
        .collect();
    assert_eq!(lives, once, "{what}");
    let status = cluster.status("web").await;
    assert_eq!(status["availableReplicas"], 4, "{what}: {status}");
    assert_eq!(cluster.revisions().await.len(), 1, "{what}");
    assert_eq!(cluster.claim_names().await.len(), 4, "{what}");
    true
}

#[tokio::test(start_paused = true)]
async fn dying_after_any_write_loses_and_repeats_nothing() {
    for parallel in [false, true] {
        let mut moments = 0;
        while run(parallel, moments).await {
            moments += 1;
        }
        assert!(moments >= 12, "only {moments} moments to die in");
    }
}

#[tokio::test(start_paused = true)]
async fn dying_during_a_rolling_update_replaces_each_pod_once() {
    for writes in 0..10 {
        let mut cluster = Cluster::start(pods()).await;
        cluster.create(&STATEFUL_SETS, &manifests::web(3)).await;
        cluster.settle().await;
        cluster.plane().server().audit().clear();
        let mut set = cluster
            .get(&STATEFUL_SETS, "web")
            .await
            .expect("the set exists");
        set["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example/web:2");
        cluster
            .patch(&STATEFUL_SETS, "web", &json!({"spec": set["spec"]}))
            .await;
        assert!(kill_after(&mut cluster, writes + 1).await);
        cluster.start_controller();
        settle(&cluster).await;
        let once: BTreeMap<String, (usize, usize)> = (0..3)
            .map(|ordinal| (format!("web-{ordinal}"), (1, 1)))
            .collect();
        assert_eq!(pod_lives(&cluster), once, "killed after {writes} writes");
        let status = cluster.status("web").await;
        assert_eq!(status["currentRevision"], status["updateRevision"]);
        assert_eq!(
            cluster.revisions().await.len(),
            2,
            "killed after {writes} writes"
        );
    }
}
