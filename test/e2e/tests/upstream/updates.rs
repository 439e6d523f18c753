//! Updates and rollbacks, complete or partitioned.

use e2e::claims::mounted_claims;
use e2e::manifests::{FINALIZER, NEW_IMAGE, OLD_IMAGE, plain, probed, with_claims};
use e2e::{Cluster, is_ready, revision};
use integration::poll::Patience;
use integration::stateful_sets::{set_finalizers, uid};
use serde_json::{Value, json};
use statefulset_client::feature_gates::{FeatureGates, KubeVersion};
use statefulset_client::resource::PODS;
use std::time::Duration;

/// Container that exits with an error.
const SLEEPER: &str = "sleep-exit-with-1";

/// Updates a set while one of its pods is unready, and rolls back the same way: the first revision
/// is reused. The claims stay, and every new pod mounts those of its predecessor.
async fn rolls_back(namespace: &str, set: Value) {
    let cluster = Cluster::start(namespace).await;
    let templates = set["spec"]["volumeClaimTemplates"]
        .as_array()
        .unwrap()
        .len();
    let ss = cluster.create(&probed(set)).await;
    ss.until_ready(3).await;
    let claims = mounted_claims(&ss).await;
    assert_eq!(claims.len(), 3 * templates);
    let first = ss.revisions().await;
    assert_eq!(first.current, first.update);
    ss.assert_pods(OLD_IMAGE, &first.current).await;

    ss.set_probe(1, false).await;
    ss.set_image(NEW_IMAGE).await;
    let second = ss.revisions().await;
    assert_ne!(second.current, second.update);
    assert_eq!(second.current, first.current);
    ss.set_probe(1, true).await;
    assert_eq!(ss.until_updated().await.current, second.update);
    ss.until_ready(3).await;
    ss.assert_pods(NEW_IMAGE, &second.update).await;
    assert_eq!(mounted_claims(&ss).await, claims);

    ss.set_probe(1, false).await;
    ss.set_image(OLD_IMAGE).await;
    let back = ss.revisions().await;
    assert_eq!(back.update, first.current);
    assert_ne!(back.current, back.update);
    ss.set_probe(1, true).await;
    assert_eq!(ss.until_updated().await.current, first.current);
    ss.until_ready(3).await;
    ss.assert_pods(OLD_IMAGE, &first.current).await;
    assert_eq!(mounted_claims(&ss).await, claims);
    cluster.finish().await;
}

#[tokio::test(start_paused = true)]
async fn test_should_perform_rolling_updates_and_roll_backs_of_template_modifications_with_pvcs() {
    rolls_back("roll-back-claims", with_claims("ss", 3)).await;
}

#[tokio::test(start_paused = true)]
async fn test_should_perform_rolling_updates_and_roll_backs_of_template_modifications() {
    rolls_back("roll-back", plain("ss2", 3)).await;
}

/// After the image change, upstream checks pods from an earlier list; here they are listed again.
#[tokio::test(start_paused = true)]
async fn test_should_perform_canary_updates_and_phased_rolling_updates_of_template_modifications() {
    let cluster = Cluster::start("canary").await;
    let mut set = probed(plain("ss2", 3));
    set["spec"]["updateStrategy"]["rollingUpdate"] = json!({"partition": 3});
    let ss = cluster.create(&set).await;
    ss.until_ready(3).await;
    let first = ss.revisions().await;
    assert_eq!(first.current, first.update);
    ss.assert_pods(OLD_IMAGE, &first.current).await;

    ss.set_image(NEW_IMAGE).await;
    let second = ss.revisions().await;
    assert_ne!(second.current, second.update);
    ss.stays_at(3).await;
    ss.assert_pods(OLD_IMAGE, &second.current).await;

    let (old, new) = ((OLD_IMAGE, &*second.current), (NEW_IMAGE, &*second.update));
    ss.set_partition(2).await;
    ss.until_updated_down_to(2).await;
    ss.assert_partitioned(2, old, new).await;

    ss.replace_pods(&[0, 2]).await;
    ss.until_ready(3).await;
    ss.assert_partitioned(2, old, new).await;

    for partition in [1, 0] {
        ss.set_partition(partition).await;
        ss.until_updated_down_to(partition).await;
        ss.assert_partitioned(partition, old, new).await;
    }
    let last = ss.revisions().await;
    assert_eq!(
        (&last.current, &last.update),
        (&second.update, &second.update)
    );
    cluster.finish().await;
}

/// Updates the image of all pods but the first, which a partition protects, and deletes the first
/// while a finalizer holds it: its replacement has the old revision.
async fn assert_keeps_first_pod(namespace: &str, set: Value, fails_on_stop: bool) {
    let cluster = Cluster::start(namespace).await;
    let mut set = probed(set);
    set["spec"]["updateStrategy"]["rollingUpdate"] = json!({"partition": 1});
    let ss = cluster.create(&set).await;
    ss.until_ready(3).await;
    let first = ss.revisions().await;
    assert_eq!(first.current, first.update);
    ss.assert_pods(OLD_IMAGE, &first.current).await;
    let (space, pod) = (cluster.space(), ss.pod_name(0));
    if fails_on_stop {
        cluster.fail_on_stop(&pod).await;
    }

    set_finalizers(space, &pod, &[FINALIZER]).await;
    ss.set_image(NEW_IMAGE).await;
    let second = ss.revisions().await;
    assert_ne!(second.current, second.update);
    let counts = [
        ("updatedReplicas", 2),
        ("replicas", 3),
        ("readyReplicas", 3),
    ];
    ss.until_counts(&counts).await;
    let (old, new) = ((OLD_IMAGE, &*second.current), (NEW_IMAGE, &*second.update));
    ss.assert_partitioned(1, old, new).await;

    let before = ss.pod(0).await;
    ss.delete_pod(0).await;
    ss.until_counts(&[("readyReplicas", 2)]).await;
    let held = ss.pod(0).await;
    assert_eq!(uid(&held), uid(&before), "the first pod is held");
    assert!(!held["metadata"]["deletionTimestamp"].is_null());
    if fails_on_stop {
        let failed = async || {
            let held = ss.pod(0).await;
            (held["status"]["phase"] == "Failed").then_some(held)
        };
        let patience = Patience(Duration::from_secs(60));
        let failed = patience.until("the first pod has failed", failed).await;
        assert_eq!(exit_code(&failed, SLEEPER), Some(1));
    }
    set_finalizers(space, &pod, &[]).await;
    ss.until_counts(&[("readyReplicas", 3)]).await;
    assert_ne!(
        uid(&ss.pod(0).await),
        uid(&before),
        "the first pod is recreated"
    );
    ss.assert_partitioned(1, old, new).await;
    cluster.finish().await;
}

/// Exit code of a container of the pod.
fn exit_code(pod: &Value, container: &str) -> Option<i64> {
    let statuses = pod["status"]["containerStatuses"].as_array()?;
    let status = statuses.iter().find(|status| status["name"] == container)?;
    status["state"]["terminated"]["exitCode"].as_i64()
}

#[tokio::test(start_paused = true)]
async fn test_should_perform_canary_updates_and_phased_rolling_updates_of_template_modifications_for_partiton1_and_delete_pod_0_without_failing_container()
 {
    assert_keeps_first_pod("partition-1", plain("ss2", 3), false).await;
}

/// Upstream's second container exits with an error when stopped; here that is a setting of the
/// kubelet.
#[tokio::test(start_paused = true)]
async fn test_should_perform_canary_updates_and_phased_rolling_updates_of_template_modifications_for_partiton1_and_delete_pod_0_with_failing_container()
 {
    let mut set = plain("ss3", 3);
    let containers = set["spec"]["template"]["spec"]["containers"].as_array_mut();
    let sleeper = json!({"name": SLEEPER, "image": OLD_IMAGE, "args": ["pause"]});
    containers.unwrap().push(sleeper);
    assert_keeps_first_pod("partition-1-failing", set, true).await;
}

#[tokio::test(start_paused = true)]
async fn test_should_perform_rolling_updates_with_max_unavailable() {
    let gates = FeatureGates::default().max_unavailable_stateful_set(true);
    let cluster = Cluster::with_gates("max-unavailable", gates).await;
    let mut set = probed(plain("ss-maxunavailable", 5));
    set["spec"]["updateStrategy"]["rollingUpdate"] = json!({"maxUnavailable": 2});
    let ss = cluster.create(&set).await;
    ss.until_ready(5).await;
    let first = ss.revisions().await;
    assert_eq!(first.current, first.update);
    ss.assert_pods(OLD_IMAGE, &first.current).await;

    ss.set_image(NEW_IMAGE).await;
    let mut most = 0;
    let updated = async || {
        let pods = ss.pods().await;
        let unready = pods.iter().filter(|pod| !is_ready(pod)).count() + 5 - pods.len();
        assert!(unready <= 2, "{unready} pods are not ready");
        most = most.max(unready);
        let revisions = ss.revisions().await;
        (pods.len() == 5 && revisions.current == revisions.update).then_some(revisions)
    };
    let patience = e2e::SET_PATIENCE;
    let last = patience.until("the set is updated", updated).await;
    assert_eq!(most, 2, "two pods were updated in parallel");
    assert_ne!(last.current, first.current);
    ss.until_counts(&[("updatedReplicas", 5)]).await;
    ss.assert_pods(NEW_IMAGE, &last.current).await;
    cluster.finish().await;
}

#[tokio::test(start_paused = true)]
async fn test_should_implement_legacy_replacement_when_the_update_strategy_is_on_delete() {
    let cluster = Cluster::start("on-delete").await;
    let mut set = probed(plain("ss2", 3));
    set["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    let ss = cluster.create(&set).await;
    ss.until_ready(3).await;
    let first = ss.revisions().await;
    assert_eq!(first.current, first.update);
    ss.assert_pods(OLD_IMAGE, &first.current).await;
    let delete_all = async || {
        ss.replace_pods(&[0, 1, 2]).await;
        ss.until_ready(3).await;
    };
    delete_all().await;
    ss.assert_pods(OLD_IMAGE, &first.current).await;

    ss.set_image(NEW_IMAGE).await;
    let second = ss.revisions().await;
    assert_ne!(second.current, second.update);
    // Nothing changes until the user deletes pods.
    ss.stays_at(3).await;
    let pods = cluster.space().list(&PODS, ss.selector()).await;
    assert!(pods.iter().all(|pod| revision(pod) == second.current));
    delete_all().await;
    ss.assert_pods(NEW_IMAGE, &second.update).await;
    cluster.finish().await;
}

/// Upstream counts the pods; here they also have to begin at once, after the last old pod.
#[tokio::test(start_paused = true)]
async fn test_should_preserve_parallel_pod_management_policy_when_recreating_pods_with_recreate_strategy()
 {
    integration::embedded_only!("needs the gate StatefulSetRecreateStrategy of 1.37");
    let gates = FeatureGates::parse("StatefulSetRecreateStrategy=true", KubeVersion::v1(37));
    let cluster = Cluster::with_gates("recreate-parallel", gates.unwrap()).await;
    let mut set = plain("ss-recreate", 3);
    set["spec"]["podManagementPolicy"] = json!("Parallel");
    set["spec"]["updateStrategy"] = json!({"type": "Recreate"});
    let ss = cluster.create(&set).await;
    ss.until_ready(3).await;
    let first = ss.revisions().await;
    ss.assert_pods(OLD_IMAGE, &first.current).await;

    ss.set_image(NEW_IMAGE).await;
    let recreated = async || {
        let pods = ss.pods().await;
        let is_new = |pod: &&Value| pod["spec"]["containers"][0]["image"] == NEW_IMAGE;
        let new = pods.iter().filter(is_new).count();
        assert!(new == 0 || new == pods.len(), "old and new pods together");
        let revisions = ss.revisions().await;
        (new == 3 && revisions.current == revisions.update).then_some(revisions)
    };
    let patience = e2e::SET_PATIENCE;
    let last = patience.until("all pods are recreated", recreated).await;
    assert_ne!(last.current, first.current);
    ss.assert_pods(NEW_IMAGE, &last.current).await;
    let pods = ss.pods().await;
    let mut begins = pods.iter().map(|pod| &pod["metadata"]["creationTimestamp"]);
    let begin = begins.next().unwrap();
    assert!(begins.all(|next| next == begin), "{pods:?}");
    assert_eq!(ss.get().await["spec"]["podManagementPolicy"], "Parallel");
    cluster.finish().await;
}
