//! Data that go without further action: claims that are being deleted while pods use them.

use super::case::Case;
use super::finding::Risk;
use crate::model::Claim;

/// The risks of a set.
pub(super) fn find(case: Case<'_>) -> Vec<Risk> {
    let claims = case.snapshot.claims();
    let claims = claims.filter(|claim| claim.metadata.deletion_timestamp.is_some());
    claims.filter_map(|claim| risk(case, claim)).collect()
}

fn risk(case: Case<'_>, claim: &Claim) -> Option<Risk> {
    let name = &claim.metadata.name;
    let users = case.snapshot.pods_with(name);
    let users: Vec<&str> = users.map(|pod| pod.metadata.name.as_str()).collect();
    if users.is_empty() {
        return None;
    }
    let since = claim.metadata.deleted_at();
    let since = since.map_or_else(String::new, |at| format!(" since {at}"));
    let noun = if users.len() == 1 { "pod" } else { "pods" };
    let holders = format!("{noun} {}", users.join(", "));
    let volume = claim.spec.volume_name.as_str();
    let found = case.snapshot.volume(volume);
    let policy = found.map(|it| it.spec.persistent_volume_reclaim_policy.as_str());
    let (ends, protect) = match policy {
        _ if volume.is_empty() => ("it has no volume".to_owned(), None),
        Some("Retain") => (
            format!("its volume {volume} then keeps the data, but no pod gets it by itself"),
            None,
        ),
        Some(policy) => (
            format!("its volume {volume} and the data then go as well (reclaim policy {policy})"),
            Some(keep(volume)),
        ),
        None => (
            format!("the reclaim policy of its volume {volume} decides about the data"),
            Some(keep(volume)),
        ),
    };
    Some(Risk {
        text: format!(
            "claim {name} is being deleted{since} and goes as soon as {holders} ends: {ends}"
        ),
        protect,
    })
}

/// The command that lets the volume outlive its claim.
fn keep(volume: &str) -> String {
    let patch = r#"{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}"#;
    format!("kubectl patch pv {volume} --type=merge -p '{patch}'")
}
