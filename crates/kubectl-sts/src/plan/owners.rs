//! Owners of claims and pods that are neither the set nor one of its pods.

use std::collections::BTreeMap;

use crate::model::Owner;
use crate::objects::Snapshot;
use crate::server::{Server, owner_exists};

/// Finds out which of these owners exist, by uid. An owner that can't be looked up counts as
/// existing, which is noted.
pub(super) async fn existing(
    server: &Server,
    namespace: &str,
    set: &str,
    snapshot: &Snapshot,
) -> BTreeMap<String, bool> {
    let mut found = BTreeMap::new();
    for (object, owner) in owners(snapshot) {
        if found.contains_key(&owner.uid) || is_copied(snapshot, &owner.uid) {
            continue;
        }
        // The names of the set and of its pods belong to the objects of the snapshot.
        let is_of_set = owner.kind == "StatefulSet" && owner.name == set;
        let is_of_pod = owner.kind == "Pod" && owner.api_version == "v1";
        let exists = if is_of_set || is_of_pod && snapshot.pod(&owner.name).is_some() {
            false
        } else {
            let exists = owner_exists(server, namespace, owner).await;
            exists.unwrap_or_else(|| {
                let Owner { kind, name, .. } = owner;
                server.note_unread(&format!(
                    "{kind} {name}, the owner of {object}, can't be looked up and counts as existing"
                ));
                true
            })
        };
        found.insert(owner.uid.clone(), exists);
    }
    found
}

fn owners(snapshot: &Snapshot) -> impl Iterator<Item = (&str, &Owner)> {
    let claims = snapshot.claims().map(|claim| &claim.metadata);
    let objects = claims.chain(snapshot.pods().map(|pod| &pod.metadata));
    objects.flat_map(|metadata| {
        let owners = metadata.owner_references.iter();
        owners.map(|owner| (metadata.name.as_str(), owner))
    })
}

/// Reports whether an object of the snapshot has this uid.
fn is_copied(snapshot: &Snapshot, uid: &str) -> bool {
    let set = snapshot.set.as_ref().map(|set| &set.object.metadata);
    let pods = snapshot.pods().map(|pod| &pod.metadata);
    set.into_iter().chain(pods).any(|it| it.uid == uid)
}
