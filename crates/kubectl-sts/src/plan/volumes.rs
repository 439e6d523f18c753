//! The volumes of claims that end: data end with a volume, not with a claim.

use kube_apimachinery::error_line::error_line;
use serde::Serialize;

use super::loss::Loss;
use crate::model::{Claim, Volume};
use crate::objects::Snapshot;
use crate::server::{Server, VOLUMES};

/// A claim that would be deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeletedClaim {
    name: String,
    size: String,
    storage_class: String,
    /// Reason for its deletion.
    reason: String,
    /// Its volume; none if it isn't bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    volume: Option<String>,
    /// The end of the volume, in words.
    volume_ends: String,
    /// The end of the data.
    data: Data,
}

/// The end of the data of a claim that would be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Data {
    /// They are deleted with the volume, or may be.
    Lost,
    /// The volume keeps them, but the pod gets an empty one.
    Detached,
    /// The volume keeps them, and no pod needs them.
    Kept,
    /// The claim has no volume.
    None,
}

/// Reads the volumes of the claims that end.
pub(super) async fn ends(
    server: &Server,
    snapshot: &Snapshot,
    losses: Vec<Loss>,
) -> Vec<DeletedClaim> {
    let mut deleted = Vec::new();
    for loss in losses {
        let Some(claim) = snapshot.claim(&loss.claim) else {
            continue;
        };
        let volume = &claim.spec.volume_name;
        let read = if volume.is_empty() {
            Ok(None)
        } else {
            read(server, volume).await
        };
        if let Err(error) = &read {
            server.note_unread(&error_line(error.as_ref()));
        }
        deleted.push(DeletedClaim::new(claim, loss, read.as_ref()));
    }
    deleted
}

async fn read(server: &Server, name: &str) -> anyhow::Result<Option<Volume>> {
    let text = server.get(&VOLUMES, None, name).await?;
    text.map(|text| crate::server::decode(&text)).transpose()
}

impl DeletedClaim {
    fn new(claim: &Claim, loss: Loss, volume: Result<&Option<Volume>, &anyhow::Error>) -> Self {
        let name = claim.spec.volume_name.as_str();
        let policy = volume.map(|volume| {
            let policy = volume
                .as_ref()
                .map(|it| &it.spec.persistent_volume_reclaim_policy);
            policy.map(String::as_str)
        });
        let (data, volume_ends) = match policy {
            _ if name.is_empty() => (Data::None, "it has no volume".to_owned()),
            Ok(None) => (Data::None, format!("its volume {name} no longer exists")),
            Ok(Some("Retain")) if loss.is_replaced => (
                Data::Detached,
                format!(
                    "its volume {name} keeps the data (reclaim policy Retain), but the new claim \
                     of this name gets an empty one"
                ),
            ),
            Ok(Some("Retain")) => (
                Data::Kept,
                format!("its volume {name} keeps the data (reclaim policy Retain)"),
            ),
            Ok(Some(policy)) => (
                Data::Lost,
                format!("its volume {name} is deleted with it (reclaim policy {policy})"),
            ),
            Err(_) => (
                Data::Lost,
                format!("the reclaim policy of its volume {name} can't be read"),
            ),
        };
        let class = claim.spec.storage_class_name.clone();
        Self {
            name: loss.claim,
            size: claim.size().to_owned(),
            storage_class: class.unwrap_or_default(),
            reason: loss.reason,
            volume: (!name.is_empty()).then(|| name.to_owned()),
            volume_ends,
            data,
        }
    }

    /// True if the pod or the user loses data by the deletion.
    pub(super) fn is_dangerous(&self) -> bool {
        matches!(self.data, Data::Lost | Data::Detached)
    }

    /// The deletion in one line.
    pub(super) fn line(&self) -> String {
        let Self {
            name,
            size,
            reason,
            volume_ends,
            ..
        } = self;
        let label = match self.data {
            Data::Lost => "DATA LOSS",
            Data::Detached => "DATA DETACHED",
            Data::Kept => "DATA KEPT",
            Data::None => "NO DATA",
        };
        let class = if self.storage_class.is_empty() {
            "none"
        } else {
            &self.storage_class
        };
        format!(
            "{label}: claim {name} ({size}, storage class {class}) would be deleted: {reason}; \
             {volume_ends}"
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reclaim_policy_decides_about_the_data() {
        let bound = json!({"spec": {"volumeName": "pv-1"}});
        let bound: Claim = serde_json::from_value(bound).expect("the claim decodes");
        let loss = |is_replaced| Loss {
            claim: "data-web-1".to_owned(),
            reason: "a reason".to_owned(),
            is_replaced,
        };
        for (policy, is_replaced, data) in [
            ("Delete", false, Data::Lost),
            ("Delete", true, Data::Lost),
            ("Recycle", true, Data::Lost),
            ("Retain", true, Data::Detached),
            ("Retain", false, Data::Kept),
        ] {
            let spec = json!({"persistentVolumeReclaimPolicy": policy});
            let volume = serde_json::from_value(json!({"spec": spec}));
            let volume: Option<Volume> = Some(volume.expect("the volume decodes"));
            let found = DeletedClaim::new(&bound, loss(is_replaced), Ok(&volume));
            assert_eq!(found.data, data, "{policy} {is_replaced}: {found:?}");
            assert!(found.volume_ends.contains("pv-1"), "{found:?}");
        }
        let denied = anyhow::anyhow!("needs permission to get persistentvolumes");
        let found = DeletedClaim::new(&bound, loss(false), Err(&denied));
        assert_eq!(found.data, Data::Lost, "{found:?}");
        let unbound = Claim::default();
        assert_eq!(
            DeletedClaim::new(&unbound, loss(true), Ok(&None)).data,
            Data::None
        );
    }
}
