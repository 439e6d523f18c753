//! Claim retention: claims are deleted with their pod or their set, or kept.

use std::slice::from_ref;

use e2e::claims::{
    change_claim, claim_name, reference, until_claims, until_owned, until_owners_are,
};
use e2e::manifests::{retaining, with_claims};
use e2e::{Cluster, POD_PATIENCE, SET_PATIENCE, StatefulSet};
use integration::space::Patch;
use integration::stateful_sets::{name, phase, uid};
use serde_json::{Value, json};
use statefulset_client::resource::{PERSISTENT_VOLUME_CLAIMS, PODS, Resource, STATEFUL_SETS};

/// Objects that control nothing.
const CONFIG_MAPS: Resource = Resource {
    group: "",
    version: "v1",
    plural: "configmaps",
    kind: "ConfigMap",
};

/// A set whose claims are deleted with it.
async fn deleted_with_the_set(cluster: &Cluster) -> StatefulSet<'_> {
    let policy = json!({"whenDeleted": "Delete"});
    let ss = cluster
        .create(&retaining(with_claims("ss", 3), policy))
        .await;
    ss.until_ready(3).await;
    until_owned(&ss, &[0, 1, 2], true, false).await;
    ss
}

/// A set whose claims are deleted with their pods.
async fn deleted_with_pods(cluster: &Cluster) -> StatefulSet<'_> {
    let policy = json!({"whenScaled": "Delete"});
    let ss = cluster
        .create(&retaining(with_claims("ss", 3), policy))
        .await;
    ss.until_ready(3).await;
    until_owned(&ss, &[0, 1, 2], false, false).await;
    ss
}

async fn delete(cluster: &Cluster, ss: &StatefulSet<'_>) {
    cluster
        .space()
        .delete(&STATEFUL_SETS, ss.name(), None)
        .await;
}

/// Removes a pod's owner, and waits until the set has adopted the pod. Upstream's patch is empty on
/// the wire, and orphans nothing.
async fn orphan(cluster: &Cluster, ss: &StatefulSet<'_>, ordinal: usize) {
    let patch = json!({"metadata": {"ownerReferences": null}});
    let pod = ss.pod_name(ordinal);
    let orphaned = cluster
        .space()
        .patch(&PODS, &pod, "", Patch::Merge, &patch)
        .await;
    assert!(orphaned["metadata"]["ownerReferences"].is_null());
    let reference = reference(ss).await;
    let adopted = async || {
        let pod = ss.pod(ordinal).await;
        (pod["metadata"]["ownerReferences"] == json!([reference])).then_some(())
    };
    POD_PATIENCE.until("the orphan is adopted", adopted).await;
}

#[tokio::test(start_paused = true)]
async fn test_should_delete_pvcs_with_a_when_deleted_policy() {
    let cluster = Cluster::start("when-deleted").await;
    let ss = deleted_with_the_set(&cluster).await;
    delete(&cluster, &ss).await;
    until_claims(&ss, &[]).await;
    cluster.finish().await;
}

#[tokio::test(start_paused = true)]
async fn test_should_delete_pvcs_with_a_on_scaledown_policy() {
    let cluster = Cluster::start("on-scaledown").await;
    let ss = deleted_with_pods(&cluster).await;
    ss.scale(1).await;
    until_claims(&ss, &[0]).await;
    cluster.finish().await;
}

#[tokio::test(start_paused = true)]
async fn test_should_delete_pvcs_after_adopting_pod_when_deleted() {
    let cluster = Cluster::start("adopted-when-deleted").await;
    let ss = deleted_with_the_set(&cluster).await;
    orphan(&cluster, &ss, 2).await;
    until_owned(&ss, &[0, 1, 2], true, false).await;
    delete(&cluster, &ss).await;
    until_claims(&ss, &[]).await;
    cluster.finish().await;
}

#[tokio::test(start_paused = true)]
async fn test_should_delete_pvcs_after_adopting_pod_when_scaled() {
    let cluster = Cluster::start("adopted-when-scaled").await;
    let ss = deleted_with_pods(&cluster).await;
    ss.until_counts(&[("availableReplicas", 3)]).await;
    orphan(&cluster, &ss, 2).await;
    ss.scale(1).await;
    until_claims(&ss, &[0]).await;
    cluster.finish().await;
}

/// Owner reference to a new config map.
async fn config_map(cluster: &Cluster, controls: Option<bool>) -> Value {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}});
    let created = cluster.space().create(&CONFIG_MAPS, &object).await;
    let mut reference = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": uid(&created),
    });
    if let Some(controls) = controls {
        reference["controller"] = controls.into();
    }
    reference
}

#[tokio::test(start_paused = true)]
async fn test_should_not_delete_pvc_with_on_scaledown_policy_if_another_controller_owns_the_pvc() {
    let cluster = Cluster::start("another-controller").await;
    let ss = cluster.create(&with_claims("ss", 3)).await;
    ss.until_ready(3).await;
    until_claims(&ss, &[0, 1, 2]).await;
    let other = config_map(&cluster, Some(true)).await;
    change_claim(&ss, 1, |claim| {
        claim["metadata"]["ownerReferences"] = json!([other]);
    })
    .await;
    ss.set_retention(&json!({"whenDeleted": "Retain", "whenScaled": "Delete"}))
        .await;
    ss.scale(0).await;
    until_claims(&ss, &[1]).await;

    change_claim(&ss, 1, |claim| {
        claim["metadata"]["ownerReferences"] = json!(null);
    })
    .await;
    ss.scale(2).await;
    ss.until_ready(2).await;
    until_claims(&ss, &[0, 1]).await;
    ss.scale(1).await;
    until_claims(&ss, &[0]).await;
    cluster.finish().await;
}

#[tokio::test(start_paused = true)]
async fn test_should_not_delete_pvcs_when_there_is_another_controller() {
    let cluster = Cluster::start("not-its-claims").await;
    let ss = cluster.create(&with_claims("ss", 4)).await;
    ss.until_ready(4).await;
    until_claims(&ss, &[0, 1, 2, 3]).await;
    let other = config_map(&cluster, None).await;
    change_claim(&ss, 1, |claim| {
        claim["metadata"]["ownerReferences"] = json!([other]);
    })
    .await;
    let unknown = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "unknown",
        "uid": "9d86d6ae-4e06-4ff1-bc55-f77f52e272e9", "controller": true,
        "blockOwnerDeletion": true,
    });
    change_claim(&ss, 3, |claim| {
        claim["metadata"]["ownerReferences"] = json!([unknown]);
        claim["metadata"]["finalizers"] = json!(["keep-with/stale-ref"]);
    })
    .await;
    until_owners_are(&ss, 1, from_ref(&other)).await;
    until_owners_are(&ss, 3, from_ref(&unknown)).await;

    let own = reference(&ss).await;
    let all_as_wanted = async || {
        until_owners_are(&ss, 0, from_ref(&own)).await;
        until_owners_are(&ss, 1, &[other.clone(), own.clone()]).await;
        until_owners_are(&ss, 2, from_ref(&own)).await;
        until_owners_are(&ss, 3, from_ref(&unknown)).await;
    };
    ss.set_retention(&json!({"whenDeleted": "Delete", "whenScaled": "Retain"}))
        .await;
    all_as_wanted().await;

    change_claim(&ss, 0, |claim| {
        claim["metadata"]["ownerReferences"][0]["controller"] = false.into();
    })
    .await;
    ss.set_retention(&json!({"whenDeleted": "Delete", "whenScaled": "Delete"}))
        .await;
    all_as_wanted().await;

    delete(&cluster, &ss).await;
    until_claims(&ss, &[1, 3]).await;
    // The finalizer would block the claim, and its volume, during teardown.
    change_claim(&ss, 3, |claim| {
        claim["metadata"]["finalizers"] = json!(null);
    })
    .await;
    cluster.finish().await;
}

/// Node of a pod.
fn node(pod: &Value) -> &str {
    pod["spec"]["nodeName"].as_str().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn test_pvc_should_be_recreated_when_pod_is_pending_due_to_missing_pvc() {
    let cluster = Cluster::start("missing-claim").await;
    let space = cluster.space();
    let chosen_node = cluster.node().await;
    let chosen = name(&chosen_node).to_owned();
    let mut set = with_claims("ss", 1);
    let host = chosen_node["metadata"]["labels"]["kubernetes.io/hostname"].clone();
    set["spec"]["template"]["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": host});
    let ss = cluster.create(&set).await;
    until_claims(&ss, &[0]).await;
    ss.until_counts(&[("readyReplicas", 1)]).await;
    assert_eq!(node(&ss.pod(0).await), chosen);

    cluster.set_schedulable(&chosen, false).await;
    let before = uid(&ss.pod(0).await).to_owned();
    ss.delete_pod(0).await;
    let pending = async || {
        let pod = space.find(&PODS, "ss-0", "").await?;
        (uid(&pod) != before && phase(&pod) == "Pending").then_some(())
    };
    POD_PATIENCE
        .until("the pod waits for its node", pending)
        .await;
    ss.until_counts(&[("currentReplicas", 1)]).await;
    assert_eq!(space.list(&PERSISTENT_VOLUME_CLAIMS, "").await.len(), 1);
    let claim = space
        .get(&PERSISTENT_VOLUME_CLAIMS, &claim_name(&ss, 0))
        .await;
    space
        .delete(&PERSISTENT_VOLUME_CLAIMS, &claim_name(&ss, 0), None)
        .await;
    cluster.set_schedulable(&chosen, true).await;

    let recreated = async || {
        let found = space
            .find(&PERSISTENT_VOLUME_CLAIMS, &claim_name(&ss, 0), "")
            .await?;
        (uid(&found) != uid(&claim)).then_some(())
    };
    SET_PATIENCE
        .until("the claim is recreated", recreated)
        .await;
    ss.until_counts(&[("readyReplicas", 1)]).await;
    assert_eq!(node(&ss.pod(0).await), chosen);
    cluster.finish().await;
}
