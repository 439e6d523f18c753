//! The replica sets of a deployment, and their revisions.

use kube_test_control_plane_api::members::{number_at, object_mut, text_at};
use serde_json::{Map, Value, json};

use super::conditions::{self, Condition};
use super::view::{DESIRED, HASH, MAX, REVISION, ReplicaSet, View};
use super::write::Write;
use crate::dependents::controller;

/// The annotation with a replica set's former revisions.
const HISTORY: &str = "deployment.kubernetes.io/revision-history";

/// The annotations that replica sets do not take over.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
];

/// Returns the writes that create the replica set of the current template.
///
/// Upstream: `getNewReplicaSet`
pub(super) fn create(view: &View) -> Vec<Write> {
    let hash = view.hash();
    let revision = (last_revision(view) + 1).to_string();
    let mut template = view
        .value
        .pointer("/spec/template")
        .cloned()
        .unwrap_or_default();
    let metadata = object_mut(&mut template, "metadata");
    let labels = metadata.entry("labels").or_insert(json!({}));
    labels[HASH] = json!(hash);
    let labels = labels.clone();
    let mut selector = view
        .value
        .pointer("/spec/selector")
        .cloned()
        .unwrap_or_default();
    object_mut(&mut selector, "matchLabels").insert(HASH.to_owned(), json!(hash));
    let mut annotations = copied(view);
    annotations.insert(REVISION.to_owned(), json!(revision));
    annotations.extend(bounds(view));
    let name = format!("{}-{hash}", view.name());
    let set = json!({
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": view.name(),
                "uid": &*view.uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "replicas": new_replicas(view, 0),
            "minReadySeconds": number_at(&view.value, "/spec/minReadySeconds"),
            "selector": selector,
            "template": template,
        },
    });
    let message = format!("Created new replica set {name:?}");
    let created = Condition::progressing("True", "NewReplicaSetCreated", message);
    let note = note_revision(view, &revision);
    let status = conditions::has_deadline(view)
        .then(|| conditions::set(view, &created))
        .flatten()
        .map(|condition| Write::Status(json!({"conditions": [condition]})));
    [Write::Create(set)]
        .into_iter()
        .chain(note)
        .chain(status)
        .collect()
}

/// Returns the writes that sync the current replica set and the deployment's revision.
///
/// Upstream: `getNewReplicaSet`, for a replica set that exists.
pub(super) fn follow(view: &View) -> Vec<Write> {
    let Some(set) = &view.new else {
        return Vec::new();
    };
    let min_ready = number_at(&view.value, "/spec/minReadySeconds");
    let mut annotations = copied(view);
    annotations.retain(|name, value| set.annotation(name) != value.as_str());
    let last = last_revision(view);
    let own = set.number(REVISION).unwrap_or_default();
    let revision = own.max(last + 1);
    if own < revision {
        annotations.insert(REVISION.to_owned(), json!(revision.to_string()));
        if own > 0 {
            let history = match set.annotation(HISTORY) {
                None | Some("") => own.to_string(),
                Some(before) => format!("{before},{own}"),
            };
            annotations.insert(HISTORY.to_owned(), json!(history));
        }
    }
    let mut patch = json!({});
    if !annotations.is_empty() {
        patch["metadata"] = json!({"annotations": annotations});
    }
    if number_at(&set.value, "/spec/minReadySeconds") != min_ready {
        patch["spec"] = json!({"minReadySeconds": min_ready});
    }
    let change = (patch != json!({})).then(|| change(set, patch));
    let note = note_revision(view, &revision.to_string());
    change.into_iter().chain(note).collect()
}

/// Returns the deletions of old replica sets above the limit of the history.
///
/// Upstream: `cleanupDeployment`
pub(super) fn clean_up(view: &View) -> Vec<Write> {
    let limit = view
        .value
        .pointer("/spec/revisionHistoryLimit")
        .and_then(Value::as_u64);
    let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else {
        return Vec::new();
    };
    let is_kept =
        |set: &&ReplicaSet| !text_at(&set.value, "/metadata/deletionTimestamp").is_empty();
    let mut sets: Vec<&ReplicaSet> = view.old.iter().filter(|set| !is_kept(set)).collect();
    sets.sort_by_key(|set| set.number(REVISION).unwrap_or_default());
    let surplus = sets.len().saturating_sub(limit);
    let is_idle = |set: &&ReplicaSet| {
        let observed = number_at(&set.value, "/status/observedGeneration");
        set.replicas == 0
            && number_at(&set.value, "/status/replicas") == 0
            && number_at(&set.value, "/metadata/generation") <= observed
    };
    let idle = sets.into_iter().take(surplus).filter(is_idle);
    let delete = |set: &ReplicaSet| Write::Delete {
        key: set.key.clone(),
        uid: set.uid.clone(),
    };
    idle.map(delete).collect()
}

/// Returns the size of the new replica set, which has `size` now.
///
/// Upstream: `NewRSNewReplicas`
pub(super) fn new_replicas(view: &View, size: i64) -> i64 {
    if view.strategy != "RollingUpdate" {
        return view.replicas;
    }
    let room = view.replicas + view.max_surge - view.all_replicas();
    size + room.min(view.replicas - size).max(0)
}

/// Returns the write that scales a replica set, if it has another size or other annotations.
///
/// Upstream: `scaleReplicaSet`
pub(super) fn scaled(view: &View, set: &ReplicaSet, replicas: i64) -> Option<Write> {
    debug_assert!(controller(&set.value).is_some(), "the set has a controller");
    let mut annotations = bounds(view);
    annotations.retain(|name, value| set.annotation(name) != value.as_str());
    if set.replicas == replicas && annotations.is_empty() {
        return None;
    }
    let patch = json!({
        "metadata": {"annotations": annotations},
        "spec": {"replicas": replicas},
    });
    Some(change(set, patch))
}

fn change(set: &ReplicaSet, patch: Value) -> Write {
    Write::Change {
        key: set.key.clone(),
        uid: set.uid.clone(),
        patch,
    }
}

fn note_revision(view: &View, revision: &str) -> Option<Write> {
    let annotations = view.value.pointer("/metadata/annotations");
    let noted = annotations.and_then(|it| it.get(REVISION)?.as_str());
    let patch = json!({"metadata": {"annotations": {REVISION: revision}}});
    (noted != Some(revision)).then_some(Write::Note(patch))
}

/// Returns the highest revision of the old replica sets.
fn last_revision(view: &View) -> i64 {
    let revisions = view.old.iter().filter_map(|set| set.number(REVISION));
    revisions.max().unwrap_or_default()
}

fn copied(view: &View) -> Map<String, Value> {
    let annotations = view.value.pointer("/metadata/annotations");
    let annotations = annotations.and_then(Value::as_object);
    let mut annotations = annotations.cloned().unwrap_or_default();
    annotations.retain(|name, _| !NOT_COPIED.contains(&name.as_str()));
    annotations
}

/// Returns the annotations with the deployment's size.
fn bounds(view: &View) -> Map<String, Value> {
    let max = view.replicas + view.max_surge;
    let [desired, max] = [view.replicas, max].map(|count| json!(count.to_string()));
    Map::from_iter([(DESIRED.to_owned(), desired), (MAX.to_owned(), max)])
}
