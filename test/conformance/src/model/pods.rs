//! Pods: construction, creation, repair and deletion, with their events.

use std::rc::Rc;

use serde_json::{Value, json};

use super::claims::{
    apply_retention, check_live_set, create_claims, retention_matches, take_unseen_claims_from,
};
use super::cluster::Kind;
use super::failure::Failure;
use super::object::{list, map, name, set_or_remove};
use super::set::{POD_INDEX, POD_NAME, REVISION, ordinal};
use super::sync::Sync;

/// Maximum number of attempts at a repair.
const REPAIR_TRIES_MAX: usize = 4;

/// Builds a new pod.
pub(super) fn new_pod(sync: &Sync, template: &Value, revision: &str, ordinal: i64) -> Value {
    let set = &sync.set;
    let pod_name = set.pod_name(ordinal);
    let mut labels = map(template, "/metadata/labels");
    labels.insert(POD_NAME.to_owned(), pod_name.as_str().into());
    labels.insert(POD_INDEX.to_owned(), ordinal.to_string().into());
    labels.insert(REVISION.to_owned(), revision.into());
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name,
            "generateName": format!("{}-", set.name),
            "namespace": set.namespace,
            "labels": labels,
            "ownerReferences": [set.reference()],
        },
        "spec": template["spec"],
        "status": {},
    });
    for member in ["annotations", "finalizers"] {
        let value = template["metadata"][member].clone();
        set_or_remove(&mut pod["metadata"], member, value.is_null(), value);
    }
    pod["spec"]["hostname"] = Value::from(pod_name);
    let service = set.value["spec"]["serviceName"].as_str().unwrap_or("");
    set_or_remove(
        &mut pod["spec"],
        "subdomain",
        service.is_empty(),
        service.into(),
    );
    rewrite_volumes(sync, &mut pod);
    pod
}

/// Puts the claim volumes first, and removes other volumes of their names.
fn rewrite_volumes(sync: &Sync, pod: &mut Value) {
    let set = &sync.set;
    let from_template = |template: &Value| {
        let claim = set.claim_name(template, ordinal(pod));
        json!({"name": name(template), "persistentVolumeClaim": {"claimName": claim}})
    };
    let mut volumes: Vec<Value> = set.claim_templates.iter().map(from_template).collect();
    let is_other = |volume: &&Value| {
        set.claim_templates
            .iter()
            .all(|template| volume["name"] != name(template))
    };
    volumes.extend(list(pod, "/spec/volumes").iter().filter(is_other).cloned());
    set_or_remove(
        &mut pod["spec"],
        "volumes",
        volumes.is_empty(),
        volumes.into(),
    );
}

/// Creates a pod, after its claims.
pub(super) fn create_pod(sync: &mut Sync, pod: &Value) -> Result<(), Failure> {
    let created = match create_claims(sync, pod) {
        Ok(()) => {
            let created = sync.api.create(Kind::Pod, pod.clone());
            if created.as_ref().is_err_and(Failure::is_already_exists) {
                return created;
            }
            // Also after a failure, which a failure here replaces.
            if let Err(failure) = apply_retention(sync, pod) {
                sync.pod_event("Update", name(pod), Err(&failure));
                return Err(failure);
            }
            created
        }
        failed => failed,
    };
    sync.pod_event("Create", name(pod), created.as_ref().map(|&()| ()));
    created
}

/// Deletes a pod; a missing pod counts as deleted.
pub(super) fn delete_pod(sync: &mut Sync, pod: &Value) -> Result<(), Failure> {
    let preconditions = sync.deletion_preconditions(pod, &["uid"]);
    let deleted = match sync.api.delete(Kind::Pod, name(pod), preconditions) {
        Err(failure) if failure.is_not_found() => Ok(()),
        result => result,
    };
    sync.pod_event("Delete", name(pod), deleted.as_ref().map(|&()| ()));
    deleted
}

/// Deletes an excess pod.
pub(super) fn delete_condemned(sync: &mut Sync, pod: &Value) -> Result<(), Failure> {
    if sync.set.when_scaled == "Delete" && !sync.set.claim_templates.is_empty() {
        check_live_set(
            sync,
            &format!("will not delete pod {} and its claims", name(pod)),
        )?;
    } else {
        take_unseen_claims_from(sync, pod)?;
    }
    delete_pod(sync, pod)
}

/// Repairs identity, storage and claim ownership, with retries on conflict.
pub(super) fn update_pod(sync: &mut Sync, pod: &Value) -> Result<(), Failure> {
    let mut pod = pod.clone();
    let mut was_put = false;
    let mut result = Ok(());
    for _ in 0..REPAIR_TRIES_MAX {
        result = repair(sync, &mut pod, &mut was_put);
        if !result.as_ref().is_err_and(Failure::is_conflict) {
            break;
        }
    }
    if was_put {
        sync.pod_event("Update", name(&pod), result.as_ref().map(|&()| ()));
    }
    result
}

/// One attempt of [`Sync::update_pod`]; sets `was_put` once the pod is written.
fn repair(sync: &mut Sync, pod: &mut Value, was_put: &mut bool) -> Result<(), Failure> {
    let set = Rc::clone(&sync.set);
    let mut is_dirty = false;
    if !set.identity_matches(pod) {
        is_dirty = true;
        let ordinal = ordinal(pod);
        let pod_name = set.pod_name(ordinal);
        let metadata = &mut pod["metadata"];
        metadata["labels"][POD_NAME] = Value::from(pod_name.as_str());
        metadata["labels"][POD_INDEX] = Value::from(ordinal.to_string());
        metadata["namespace"] = Value::from(set.namespace.as_str());
        metadata["name"] = Value::from(pod_name);
    }
    if !set.storage_matches(pod) {
        is_dirty = true;
        rewrite_volumes(sync, pod);
        let created = create_claims(sync, pod);
        record_failed_update(sync, pod, created)?;
    }
    if !retention_matches(sync, pod) {
        is_dirty = true;
        let applied = apply_retention(sync, pod);
        record_failed_update(sync, pod, applied)?;
    }
    if !is_dirty {
        return Ok(());
    }
    *was_put = true;
    let looked = sync.api.look(Kind::Pod, name(pod));
    let put = looked.and_then(|()| sync.api.put(Kind::Pod, "", pod.clone()));
    if put.is_err() {
        let cached = sync
            .pods
            .iter()
            .find(|cached| name(cached) == name(pod))
            .cloned();
        *pod = cached.unwrap_or_else(|| pod.take());
    }
    put
}

fn record_failed_update(
    sync: &mut Sync,
    pod: &Value,
    result: Result<(), Failure>,
) -> Result<(), Failure> {
    if let Err(failure) = &result {
        sync.pod_event("Update", name(pod), Err(failure));
    }
    result
}
