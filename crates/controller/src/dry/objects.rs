//! Cached objects as JSON, with the fields that a sync reads.

use kube_apimachinery::time::format_seconds;
use serde_json::{Map, Value, json};
use statefulset_client::cache::indexer::IndexKey;
use statefulset_controller_util::claim::{Claim, ClaimStorage};
use statefulset_controller_util::consistency::{Caches, TrackedResource};
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::pod::{ContainerTrouble, Pod};
use statefulset_controller_util::stateful_set::StatefulSet;

/// The text of a cached object, as a live read returns it; `None` if the cache lacks the object.
pub(super) fn text(
    caches: &Caches,
    resource: TrackedResource,
    namespace: &str,
    name: &str,
) -> Option<String> {
    match resource {
        TrackedResource::StatefulSets => {
            let set = caches.sets.get(namespace, name)?;
            set.with_status(&set.status).ok()
        }
        TrackedResource::Pods => caches.pods.get(namespace, name).map(|it| pod(&it)),
        TrackedResource::PersistentVolumeClaims => caches
            .claims
            .get(namespace, name)
            .map(|it| claim(caches, &it)),
        TrackedResource::ControllerRevisions => caches
            .revisions
            .get(namespace, name)
            .map(|it| revision(&it)),
    }
}

/// The texts of all cached objects: sets, revisions, claims, pods.
pub(crate) fn texts(caches: &Caches) -> Vec<String> {
    let sets = caches.sets.list().into_iter();
    let sets = sets.filter_map(|set| set.with_status(&set.status).ok());
    let revisions = caches.revisions.list().into_iter();
    let claims = caches.claims.list().into_iter();
    let pods = caches.pods.list().into_iter();
    sets.chain(revisions.map(|it| revision(&it)))
        .chain(claims.map(|it| claim(caches, &it)))
        .chain(pods.map(|it| pod(&it)))
        .collect()
}

fn pod(pod: &Pod) -> String {
    let mut metadata = metadata(
        [&pod.namespace, &pod.name, &pod.uid, &pod.resource_version],
        pod.deletion_timestamp,
    );
    metadata.insert("labels".to_owned(), json!(pod.labels));
    metadata.insert(
        "ownerReferences".to_owned(),
        json!(pod.controller.as_deref().as_slice()),
    );
    let unready = pod.unready.as_deref();
    if let Some(since) = unready.and_then(|unready| unready.since) {
        metadata.insert(
            "creationTimestamp".to_owned(),
            Value::from(format_seconds(since)),
        );
    }
    let trouble = unready.and_then(|unready| unready.trouble);
    let containers =
        trouble.map(|trouble| json!({"state": {"waiting": {"reason": reason(trouble)}}}));
    let volumes = pod.claim_volumes.iter().map(|volume| {
        json!({"name": volume.name, "persistentVolumeClaim": {"claimName": volume.claim_name}})
    });
    let ready = if pod.readiness.ready { "True" } else { "False" };
    let object = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"volumes": volumes.collect::<Vec<Value>>()},
        "status": {
            "phase": pod.phase.to_string(),
            "conditions": [{
                "type": "Ready",
                "status": ready,
                "lastTransitionTime": pod.readiness.last_transition_time.map(format_seconds),
            }],
            "containerStatuses": containers.as_slice(),
        },
    });
    object.to_string()
}

/// Returns a reason of the kubelet for this trouble.
fn reason(trouble: ContainerTrouble) -> &'static str {
    match trouble {
        ContainerTrouble::ImagePull => "ImagePullBackOff",
        ContainerTrouble::ContainerConfig => "CreateContainerConfigError",
        ContainerTrouble::CrashLoop => "CrashLoopBackOff",
    }
}

/// A cached claim has no labels: it is taken for a claim of the set with its template.
fn claim(caches: &Caches, claim: &Claim) -> String {
    let mut metadata = metadata(
        [
            &claim.namespace,
            &claim.name,
            &claim.uid,
            &claim.resource_version,
        ],
        claim.deletion_timestamp,
    );
    metadata.insert("ownerReferences".to_owned(), json!(claim.owner_references));
    let sets = caches.sets.by_index(&IndexKey::namespace(&claim.namespace));
    if let Some(set) = sets.iter().find(|set| has_claim(set, &claim.name)) {
        let labels = set.spec.selector.match_labels();
        metadata.insert("labels".to_owned(), json!(labels));
    }
    let ClaimStorage {
        request,
        capacity,
        phase,
        awaits_node,
        failed,
        infeasible,
    } = claim.storage;
    let conditions = [
        ("FileSystemResizePending", awaits_node),
        ("ControllerResizeError", failed),
    ];
    let conditions = conditions.into_iter().filter(|(_, holds)| *holds);
    let conditions = conditions.map(|(kind, _)| json!({"type": kind, "status": "True"}));
    let infeasible = infeasible.then(|| json!({"storage": "ControllerResizeInfeasible"}));
    let object = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata,
        "spec": {"resources": {"requests": {"storage": request.to_string()}}},
        "status": {
            "phase": phase.as_str(),
            "capacity": {"storage": capacity.to_string()},
            "conditions": conditions.collect::<Vec<Value>>(),
            "allocatedResourceStatuses": infeasible,
        },
    });
    object.to_string()
}

/// True if a set has a claim template and a pod for a claim of this name.
fn has_claim(set: &StatefulSet, claim: &str) -> bool {
    set.spec.claim_templates.iter().any(|template| {
        let pod = claim.strip_prefix(&*template.name);
        let pod = pod.and_then(|pod| pod.strip_prefix('-'));
        pod.and_then(|pod| pod.strip_prefix(set.name()))
            .and_then(|pod| pod.strip_prefix('-'))
            .is_some_and(|ordinal| ordinal.parse::<u32>().is_ok())
    })
}

/// The data keeps its bytes.
fn revision(revision: &ControllerRevision) -> String {
    let mut metadata = metadata(
        [
            &revision.namespace,
            &revision.name,
            &revision.uid,
            &revision.resource_version,
        ],
        None,
    );
    metadata.insert("labels".to_owned(), json!(revision.labels));
    metadata.insert(
        "ownerReferences".to_owned(),
        json!(revision.controller.as_slice()),
    );
    let created = revision.creation_timestamp.map(format_seconds);
    metadata.insert("creationTimestamp".to_owned(), json!(created));
    let data = revision.data.to_str();
    let data = if data.is_empty() { "null" } else { &data };
    let number = revision.revision;
    let metadata = Value::Object(metadata);
    format!(
        r#"{{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{metadata},"data":{data},"revision":{number}}}"#
    )
}

fn metadata(
    [namespace, name, uid, version]: [&str; 4],
    deleted: Option<jiff::Timestamp>,
) -> Map<String, Value> {
    let mut metadata = Map::new();
    for (member, value) in [
        ("namespace", namespace),
        ("name", name),
        ("uid", uid),
        ("resourceVersion", version),
    ] {
        metadata.insert(member.to_owned(), Value::from(value));
    }
    if let Some(deleted) = deleted {
        metadata.insert(
            "deletionTimestamp".to_owned(),
            Value::from(format_seconds(deleted)),
        );
    }
    metadata
}
