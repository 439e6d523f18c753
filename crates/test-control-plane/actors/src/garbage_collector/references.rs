//! What owner references point to.

use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::object::FOREGROUND;
use kube_test_control_plane_api::object::{Draft, Key, Object};
use serde_json::{Value, json};

use crate::client::ActorClient;
use crate::no_answer::NoAnswer;

/// An owner, or what a reference takes for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnerKey {
    key: Key,
    uid: String,
}

impl OwnerKey {
    /// The owner that a reference in a namespace names; none if it can't be followed.
    fn of(reference: &Value, namespace: &str) -> Option<Self> {
        let text = |member: &str| reference.get(member).and_then(Value::as_str).unwrap_or("");
        let kind = kinds::by_kind(text("apiVersion"), text("kind"))?;
        if kind.namespaced && namespace.is_empty() {
            return None;
        }
        let namespace = if kind.namespaced { namespace } else { "" };
        Some(Self {
            key: Key::new(kind, namespace, text("name")),
            uid: text("uid").to_owned(),
        })
    }

    /// Whether there really is no such owner: one of a real server's may just not be known yet.
    pub(super) async fn is_absent(&self, client: &ActorClient) -> Result<bool, NoAnswer> {
        let found = client.look_up(&self.key).await?;
        Ok(found.is_none_or(|owner| *owner.uid != *self.uid))
    }
}

/// What an owner reference points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// An owner that stays.
    Solid,
    /// Nothing, or another object of that name.
    Absent,
    /// An owner that waits for its dependents to go.
    Waiting,
}

/// An object's references with what they point to. None if one of them can't be followed: its kind
/// is unknown, or a cluster-scoped object names an owner that lives in some namespace. Nothing
/// is done about such an object.
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

/// The owners among these that are not known.
pub(super) fn absent(owners: &[(&Value, Owner)], namespace: &str) -> Vec<OwnerKey> {
    let absent = owners.iter().filter(|(_, owner)| *owner == Owner::Absent);
    absent
        .filter_map(|(reference, _)| OwnerKey::of(reference, namespace))
        .collect()
}

fn follow(client: &ActorClient, reference: &Value, namespace: &str) -> Option<Owner> {
    let OwnerKey { key, uid } = OwnerKey::of(reference, namespace)?;
    let owner = client.get(&key).filter(|owner| *owner.uid == *uid);
    Some(match owner {
        None => Owner::Absent,
        Some(owner) if is_waiting(&owner) => Owner::Waiting,
        Some(_) => Owner::Solid,
    })
}

/// Whether an object is being deleted and waits for its dependents to go first.
pub(super) fn is_waiting(object: &Object) -> bool {
    object.deleting && object.draft().metadata().finalizers().contains(&FOREGROUND)
}

/// Whether an object keeps its owner from going.
pub(super) fn blocks(object: &Object, owner_uid: &str) -> bool {
    let draft = object.draft();
    draft.metadata().owner_references().any(|reference| {
        reference.get("uid").and_then(Value::as_str) == Some(owner_uid) && is_blocking(reference)
    })
}

fn is_blocking(reference: &Value) -> bool {
    reference.get("blockOwnerDeletion") == Some(&Value::Bool(true))
}

/// Patches that make an object's references stop blocking.
pub(super) fn unblocked(draft: &Draft) -> Vec<Value> {
    draft
        .metadata()
        .owner_references()
        .filter(|reference| is_blocking(reference))
        .map(|r| json!({"uid": r.get("uid"), "blockOwnerDeletion": false}))
        .collect()
}
