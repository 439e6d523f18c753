//! The copy of the objects that concern a set.

use std::collections::BTreeMap;

use anyhow::Context as _;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

use crate::plan::change::{self, text};
use crate::plan::situation::Situation;
use crate::server::JSON;

/// Copies the objects into the control plane, owners first.
pub(super) async fn load(
    plane: &TestControlPlane,
    situation: &Situation<'_>,
) -> anyhow::Result<()> {
    let namespace = json!({"metadata": {"name": situation.namespace}});
    if situation.namespace != "default" {
        let path = "/api/v1/namespaces";
        change::send(&plane.client(), "POST", path, JSON, &namespace).await?;
    }
    for (uid, exists) in situation.owners {
        if *exists {
            put(
                plane,
                "v1",
                "ConfigMap",
                &stand_in(situation.namespace, uid).to_string(),
            )?;
        }
    }
    if let Some(set) = situation.snapshot.set.as_ref() {
        let set: Value = serde_json::from_str(&set.text).context("decode the set")?;
        put_set(plane, set)?;
    }
    let objects = situation.snapshot.dependents();
    for revision in objects.revisions {
        put(plane, "apps/v1", "ControllerRevision", revision)?;
    }
    for claim in objects.claims {
        if let Some(volume) = volume_of(claim) {
            put(plane, "v1", "PersistentVolume", &volume.to_string())?;
        }
        let claim = with_stand_ins(claim, situation.owners)?;
        put(plane, "v1", "PersistentVolumeClaim", &claim)?;
    }
    for pod in objects.pods {
        put(plane, "v1", "Pod", &with_stand_ins(pod, situation.owners)?)?;
    }
    Ok(())
}

/// Stores the set. The collector would miss its owners, which aren't copied.
pub(super) fn put_set(plane: &TestControlPlane, mut set: Value) -> anyhow::Result<()> {
    if let Some(metadata) = set.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("ownerReferences");
    }
    put(plane, "apps/v1", "StatefulSet", &set.to_string())
}

fn put(plane: &TestControlPlane, version: &str, kind: &str, text: &str) -> anyhow::Result<()> {
    let text = typed(version, kind, text)?;
    let stored = plane.server().store_as_is(text.as_bytes());
    stored.with_context(|| format!("copy a {kind}"))
}

/// The object with its type, which items of lists lack, and otherwise the same bytes.
fn typed(version: &str, kind: &str, text: &str) -> anyhow::Result<String> {
    let object: Value = serde_json::from_str(text).with_context(|| format!("decode a {kind}"))?;
    let rest = text.trim_start().strip_prefix('{');
    match rest {
        Some(rest) if object.get("kind").is_none() => Ok(format!(
            r#"{{"apiVersion":"{version}","kind":"{kind}",{rest}"#
        )),
        _ => Ok(text.to_owned()),
    }
}

/// An object with the uid of an owner that isn't copied.
fn stand_in(namespace: &str, uid: &str) -> Value {
    json!({"metadata": {"name": stand_in_name(uid), "namespace": namespace, "uid": uid}})
}

fn stand_in_name(uid: &str) -> String {
    format!("owner-{uid}")
}

/// The object with references to the stand-ins of its owners that aren't copied. Its other bytes
/// stay the same unless it has such an owner.
fn with_stand_ins(object: &str, owners: &BTreeMap<String, bool>) -> anyhow::Result<String> {
    let mut value: Value = serde_json::from_str(object).context("decode an object with owners")?;
    let references = value.pointer_mut("/metadata/ownerReferences");
    let references = references.and_then(Value::as_array_mut);
    let mut is_changed = false;
    for reference in references.into_iter().flatten() {
        let uid = text(reference, "/uid").to_owned();
        let Some(members) = reference
            .as_object_mut()
            .filter(|_| owners.contains_key(&uid))
        else {
            continue;
        };
        is_changed = true;
        members.insert("apiVersion".to_owned(), json!("v1"));
        members.insert("kind".to_owned(), json!("ConfigMap"));
        members.insert("name".to_owned(), json!(stand_in_name(&uid)));
    }
    Ok(if is_changed {
        value.to_string()
    } else {
        object.to_owned()
    })
}

/// The volume of a bound claim.
fn volume_of(claim: &str) -> Option<Value> {
    let claim: Value = serde_json::from_str(claim).ok()?;
    let volume = text(&claim, "/spec/volumeName");
    if volume.is_empty() {
        return None;
    }
    let capacity = claim.pointer("/status/capacity");
    let capacity = capacity.or_else(|| claim.pointer("/spec/resources/requests"));
    Some(json!({
        "metadata": {"name": volume, "uid": format!("volume-of-{}", text(&claim, "/metadata/uid"))},
        "spec": {
            "accessModes": claim.pointer("/spec/accessModes"),
            "capacity": capacity,
            "claimRef": {
                "namespace": text(&claim, "/metadata/namespace"),
                "name": text(&claim, "/metadata/name"),
                "uid": text(&claim, "/metadata/uid"),
            },
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": text(&claim, "/spec/storageClassName"),
        },
        "status": {"phase": "Bound"},
    }))
}
