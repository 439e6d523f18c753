//! Pod bindings.

use http::StatusCode;
use kube_test_control_plane_api::members::object_mut;
use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::options::WriteOptions;
use kube_test_control_plane_api::status::{ApiError, ApiResult, details};
use kube_test_control_plane_store::clock::Clock;
use kube_test_control_plane_store::store::Expect;
use serde_json::{Value, json};

use crate::reply::{self, Reply};
use crate::review;
use crate::route::ResourceRequest;
use crate::state::{Writes, now_text};
use crate::write::other_uid;

/// Binds a pod to a node. `reviewed` is the request of the review: that of the legacy binding has
/// another resource.
pub(crate) async fn bind(
    writes: &Writes,
    request: &ResourceRequest,
    reviewed: &ResourceRequest,
    body: &Value,
    options: &WriteOptions,
) -> ApiResult<Reply> {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    if text("/metadata/name") != request.name {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Binding object",
        ));
    }
    // Upstream returns no validation `Status` for invalid bindings.
    let node = text("/target/name");
    if !matches!(text("/target/kind"), "" | "Node") {
        return Err(ApiError::internal(format!(
            "target.kind: Unsupported value: {:?}: supported values: \"Node\", \"<empty>\"",
            text("/target/kind")
        )));
    }
    if node.is_empty() {
        return Err(ApiError::internal("target.name: Required value"));
    }
    review::review_posted(&writes.access, reviewed, body, options).await?;
    let kind = &request.kind;
    let key = request.key();
    loop {
        let Some(current) = writes.store.get(&key) else {
            return Err(ApiError::not_found(kind, &request.name));
        };
        let mut pod = current.draft();
        check_bindable(request, &pod, text("/metadata/uid"))?;
        object_mut(&mut pod.value, "spec").insert("nodeName".to_owned(), json!(node));
        let annotations = body
            .pointer("/metadata/annotations")
            .and_then(Value::as_object);
        if let Some(annotations) = annotations.filter(|found| !found.is_empty()) {
            let found = pod.metadata_mut().entry("annotations").or_insert(json!({}));
            if let Some(found) = found.as_object_mut() {
                found.extend(annotations.clone());
            }
        }
        set_condition(
            writes.reads.clock(),
            &mut pod,
            json!({"type": "PodScheduled", "status": "True"}),
        );
        let expect = Expect::Version(current.resource_version);
        if options.dry_run || writes.store.put(kind, key.clone(), expect, pod).is_ok() {
            return Ok(reply::success(StatusCode::CREATED));
        }
    }
}

/// Sets a condition of a pod; its transition time changes only with its status.
pub(super) fn set_condition(clock: &dyn Clock, pod: &mut Draft, mut condition: Value) {
    let now = now_text(clock);
    let status = object_mut(&mut pod.value, "status");
    let conditions = status.entry("conditions").or_insert(json!([]));
    let Some(list) = conditions.as_array_mut() else {
        return;
    };
    let found = list.iter_mut().find(|c| c["type"] == condition["type"]);
    let since = match &found {
        Some(found) if found["status"] == condition["status"] => {
            found["lastTransitionTime"].clone()
        }
        _ => json!(now),
    };
    condition["lastProbeTime"] = Value::Null;
    condition["lastTransitionTime"] = since;
    match found {
        Some(found) => *found = condition,
        None => list.push(condition),
    }
}

fn check_bindable(request: &ResourceRequest, pod: &Draft, uid: &str) -> ApiResult<()> {
    let name = &request.name;
    let conflict = |why: String| ApiError {
        details: Some(details(name, "", "pods/binding")),
        ..ApiError::new(
            409,
            "Conflict",
            format!("Operation cannot be fulfilled on pods/binding \"{name}\": {why}"),
        )
    };
    let found = pod.metadata().uid();
    if !uid.is_empty() && uid != found {
        return Err(other_uid(request, false, uid, found));
    }
    if pod.metadata().is_deleting() {
        return Err(conflict(format!(
            "pod {name} is being deleted, cannot be assigned to a host"
        )));
    }
    match pod.text("/spec/nodeName") {
        Some(node) if !node.is_empty() => {
            return Err(conflict(format!(
                "pod {name} is already assigned to node \"{node}\""
            )));
        }
        _ => {}
    }
    let gates = pod
        .value
        .pointer("/spec/schedulingGates")
        .and_then(Value::as_array);
    if gates.is_some_and(|gates| !gates.is_empty()) {
        return Err(conflict(format!(
            "pod {name} has non-empty .spec.schedulingGates"
        )));
    }
    Ok(())
}
