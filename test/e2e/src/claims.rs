//! Claims of a set and their owners.

use integration::stateful_sets::{name, uid};
use serde_json::{Value, json};
use statefulset_client::resource::{PERSISTENT_VOLUME_CLAIMS, PODS};

use crate::cluster::{SET_PATIENCE, StatefulSet};

/// Name of a pod's claim.
pub fn claim_name(ss: &StatefulSet<'_>, ordinal: usize) -> String {
    format!("datadir-{}-{ordinal}", ss.name)
}

/// Claims mounted by the pods: pod name, claim name and claim uid.
pub async fn mounted_claims(ss: &StatefulSet<'_>) -> Vec<[String; 3]> {
    let space = ss.space;
    let mut found = Vec::new();
    for pod in ss.pods().await {
        for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
            if let Some(claim) = volume["persistentVolumeClaim"]["claimName"].as_str() {
                let stored = space.get(&PERSISTENT_VOLUME_CLAIMS, claim).await;
                found.push([name(&pod), claim, uid(&stored)].map(str::to_owned));
            }
        }
    }
    found
}

/// Owners of a claim.
pub async fn owners(ss: &StatefulSet<'_>, ordinal: usize) -> Vec<Value> {
    let space = ss.space;
    let claim = claim_name(ss, ordinal);
    let claim = space.get(&PERSISTENT_VOLUME_CLAIMS, &claim).await;
    let owners = claim["metadata"]["ownerReferences"].as_array();
    owners.cloned().unwrap_or_default()
}

/// Changes a claim.
pub async fn change_claim(ss: &StatefulSet<'_>, ordinal: usize, change: impl Fn(&mut Value)) {
    let space = ss.space;
    let claim = claim_name(ss, ordinal);
    space
        .change(&PERSISTENT_VOLUME_CLAIMS, &claim, "", change)
        .await;
}

/// Waits until exactly the claims of these ordinals exist.
///
/// Upstream: `verifyStatefulSetPVCsExist`.
pub async fn until_claims(ss: &StatefulSet<'_>, ordinals: &[usize]) {
    let mut wanted: Vec<String> = ordinals
        .iter()
        .map(|ordinal| claim_name(ss, *ordinal))
        .collect();
    wanted.sort();
    let space = ss.space;
    let as_wanted = async || {
        let claims = space.list(&PERSISTENT_VOLUME_CLAIMS, "").await;
        let names = claims.iter().map(name);
        names.eq(wanted.iter().map(String::as_str)).then_some(())
    };
    let what = format!("the claims are {wanted:?}");
    SET_PATIENCE.until(&what, as_wanted).await;
}

/// Waits until exactly the claims of these ordinals exist, each with or without the set as
/// owner, and with or without its pod.
///
/// Upstream: `verifyStatefulSetPVCsExistWithOwnerRefs`.
pub async fn until_owned(ss: &StatefulSet<'_>, ordinals: &[usize], by_set: bool, by_pod: bool) {
    until_claims(ss, ordinals).await;
    let set = ss.get().await;
    let as_wanted = async || {
        for ordinal in ordinals {
            let owners = owners(ss, *ordinal).await;
            let owns = |kind: &str, uid: &str| {
                let mut owners = owners.iter();
                owners.any(|owner| owner["kind"] == kind && owner["uid"] == uid)
            };
            let pod = ss.pod_name(*ordinal);
            let pod = ss.space.find(&PODS, &pod, "").await;
            let pod_owns = pod.is_some_and(|pod| owns("Pod", uid(&pod)));
            if owns("StatefulSet", uid(&set)) != by_set || pod_owns != by_pod {
                return None;
            }
        }
        Some(())
    };
    let what = format!("of {ordinals:?}, set owns: {by_set}, pods own: {by_pod}");
    SET_PATIENCE.until(&what, as_wanted).await;
}

/// Waits until a claim has exactly these owners, in this order.
pub async fn until_owners_are(ss: &StatefulSet<'_>, ordinal: usize, wanted: &[Value]) {
    let as_wanted = async || (owners(ss, ordinal).await == wanted).then_some(());
    let what = format!("{} is owned by {wanted:?}", claim_name(ss, ordinal));
    SET_PATIENCE.until(&what, as_wanted).await;
}

/// Controller reference to the set.
pub async fn reference(ss: &StatefulSet<'_>) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": ss.name,
        "uid": uid(&ss.get().await), "controller": true, "blockOwnerDeletion": true,
    })
}
