//! Owner references and the state of their owners.

use kube_test_control_plane_api::object::{Draft, FOREGROUND, Key, Object};
use serde_json::{Value, json};

use crate::client::ActorClient;
use crate::server::Inconclusive;

/// An owner, as its reference identifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnerKey {
    key: Key,
    uid: String,
}

impl OwnerKey {
    /// Returns the owner named by a reference in a namespace, or `None` if the reference can't be
    /// resolved.
    fn of(client: &ActorClient, reference: &Value, namespace: &str) -> Option<Self> {
        let text = |member: &str| reference.get(member).and_then(Value::as_str).unwrap_or("");
        let kind = client.server.kind_of(text("apiVersion"), text("kind"))?;
        if kind.namespaced && namespace.is_empty() {
            return None;
        }
        let namespace = if kind.namespaced { namespace } else { "" };
        Some(Self {
            key: Key::new(&kind, namespace, text("name")),
            uid: text("uid").to_owned(),
        })
    }

    /// Reports whether the owner really does not exist. A real server's owner may only be missing
    /// from the copy.
    pub(super) async fn is_absent(&self, client: &ActorClient) -> Result<bool, Inconclusive> {
        let found = client.look_up(&self.key).await?;
        Ok(found.is_none_or(|owner| *owner.uid != *self.uid))
    }
}

/// State of the owner in a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The owner exists and is not waiting.
    Solid,
    /// No object, or another object with the same name.
    Absent,
    /// The owner waits for the deletion of its dependents.
    Waiting,
}

/// Returns an object's references with the state of their owners. Returns `None` if one of them
/// can't be resolved: its kind is unknown, or a cluster-scoped object names a namespaced owner.
/// Such an object is left alone.
pub(super) fn classify<'a>(
    client: &ActorClient,
    object: &Object,
    draft: &'a Draft,
) -> Option<Vec<(&'a Value, Owner)>> {
    draft
        .metadata()
        .owner_references()
        .map(|reference| Some((reference, follow(client, reference, &object.key.namespace)?)))
        .collect()
}

/// Returns the owners in these references that are absent.
pub(super) fn absent(
    client: &ActorClient,
    owners: &[(&Value, Owner)],
    namespace: &str,
) -> Vec<OwnerKey> {
    let absent = owners.iter().filter(|(_, owner)| *owner == Owner::Absent);
    absent
        .filter_map(|(reference, _)| OwnerKey::of(client, reference, namespace))
        .collect()
}

fn follow(client: &ActorClient, reference: &Value, namespace: &str) -> Option<Owner> {
    let OwnerKey { key, uid } = OwnerKey::of(client, reference, namespace)?;
    let owner = client.get(&key).filter(|owner| *owner.uid == *uid);
    Some(match owner {
        None => Owner::Absent,
        Some(owner) if is_waiting(&owner) => Owner::Waiting,
        Some(_) => Owner::Solid,
    })
}

/// Reports whether an object is in foreground deletion.
pub(super) fn is_waiting(object: &Object) -> bool {
    object.deleting && object.draft().metadata().finalizers().contains(&FOREGROUND)
}

/// Reports whether an object blocks the deletion of its owner.
pub(super) fn blocks(object: &Object, owner_uid: &str) -> bool {
    let draft = object.draft();
    draft.metadata().owner_references().any(|reference| {
        reference.get("uid").and_then(Value::as_str) == Some(owner_uid) && is_blocking(reference)
    })
}

fn is_blocking(reference: &Value) -> bool {
    reference.get("blockOwnerDeletion") == Some(&Value::Bool(true))
}

/// Applies the changes of a strategic merge patch to an object's references.
pub(super) fn apply_changes(metadata: &mut Value, changes: &[Value]) {
    let Some(references) = metadata.get_mut("ownerReferences") else {
        return;
    };
    let Some(references) = references.as_array_mut() else {
        return;
    };
    for change in changes {
        let is_meant = |reference: &Value| reference.get("uid") == change.get("uid");
        if change.get("$patch").is_some() {
            references.retain(|reference| !is_meant(reference));
            continue;
        }
        for reference in references.iter_mut().filter(|found| is_meant(found)) {
            if let Some(blocks) = change.get("blockOwnerDeletion") {
                reference["blockOwnerDeletion"] = blocks.clone();
            }
        }
    }
}

/// Returns patches that make an object's references stop blocking.
pub(super) fn unblocked(draft: &Draft) -> Vec<Value> {
    draft
        .metadata()
        .owner_references()
        .filter(|reference| is_blocking(reference))
        .map(|r| json!({"uid": r.get("uid"), "blockOwnerDeletion": false}))
        .collect()
}
