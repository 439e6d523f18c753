//! Virtual resources, which are never stored.

use std::sync::Arc;

use http::StatusCode;
use http::header::USER_AGENT;
use kube_test_control_plane_api::decode;
use kube_test_control_plane_api::kinds::{self, KINDS, Subresource, Target, Trait, Verb};
use kube_test_control_plane_api::members::{object_mut, text_at};
use kube_test_control_plane_api::object::{Draft, Key, Object};
use kube_test_control_plane_api::options::{Write, WriteOptions};
use kube_test_control_plane_api::query::Query;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::{Value, json};

use super::bind::bind;
use super::read::selection;
use crate::access;
use crate::auth::service_account::ISSUER;
use crate::incoming::Incoming;
use crate::reply::{self, Reply};
use crate::review;
use crate::route::ResourceRequest;
use crate::state::{Reads, Writes, now_text};
use crate::write;

/// The priority of a built-in group.
const GROUP_PRIORITY: i32 = 17_000;

/// The priority of a group of custom resources.
const CUSTOM_GROUP_PRIORITY: i32 = 1000;

/// The priority of a version in its group.
const VERSION_PRIORITY: i32 = 15;

/// Responds to a POST of a kind with
/// [`Trait::Virtual`](kube_test_control_plane_api::kinds::Trait::Virtual), or to the
/// subresource `token`.
pub(crate) async fn post_virtual(
    writes: &Writes,
    request: &ResourceRequest,
    incoming: &Incoming,
    options: &WriteOptions,
) -> ApiResult<Reply> {
    let reads = &*writes.reads;
    let behaviour = reads.behaviour();
    if request.kind.kind == "Binding" {
        return post_binding(writes, request, incoming).await;
    }
    let asked = ResourceRequest {
        kind: match request.target {
            Target::Part(Subresource::Token) => Arc::clone(&kinds::TOKEN_REQUEST),
            _ => Arc::clone(&request.kind),
        },
        ..request.clone()
    };
    let (mut draft, warnings) = write::decode(behaviour, &asked, incoming, options)?;
    write::normalize(behaviour, &asked.kind, &mut draft)?;
    write::track(reads.clock(), &asked, options, None, &mut draft)?;
    let access = &writes.access;
    let is_token = request.target == Target::Part(Subresource::Token);
    if is_token && draft.metadata().namespace().is_empty() {
        write::set_namespace(&request.kind, &request.namespace, &mut draft);
    }
    let body = review::mutate_posted(access, request, draft.value, options).await?;
    let mut reviewed = body.clone();
    if is_token && reads.has_reviews() {
        complete_token_request(writes, request, &mut reviewed);
    }
    review::review_posted(access, request, &reviewed, options).await?;
    let draft = Draft::from_value(&asked.kind, body);
    let mut draft = Draft::from_value(
        &asked.kind,
        match request.target {
            Target::Part(Subresource::Token) => {
                access::request_token(&writes.access, request, draft)?
            }
            _ => access::review(&writes.access, request, draft)?,
        },
    );
    write::normalize(behaviour, &asked.kind, &mut draft)?;
    let reply = reply::json_text(StatusCode::CREATED, draft.encode());
    reply::with_warnings(Ok(reply), &warnings)
}

/// Adds what upstream adds to the request of a token before validating webhooks see it.
fn complete_token_request(writes: &Writes, request: &ResourceRequest, body: &mut Value) {
    let metadata = object_mut(body, "metadata");
    metadata.insert("name".to_owned(), json!(request.name));
    let key = Key::of("serviceaccounts", &request.namespace, &request.name);
    if let Some(account) = writes.store.get(&key) {
        metadata.insert("uid".to_owned(), json!(account.uid));
    }
    let now = now_text(writes.reads.clock());
    metadata.insert("creationTimestamp".to_owned(), json!(now));
    let spec = object_mut(body, "spec");
    if spec.get("audiences").is_none_or(Value::is_null) {
        spec.insert("audiences".to_owned(), json!([ISSUER]));
    }
}

/// Handles the legacy binding of a pod, with the pod's name in the body.
async fn post_binding(
    writes: &Writes,
    request: &ResourceRequest,
    incoming: &Incoming,
) -> ApiResult<Reply> {
    let body = decode::value(incoming.format()?, &incoming.body)?;
    let name = text_at(&body, "/metadata/name").to_owned();
    let pods = kinds::by_resource("", "v1", "pods").ok_or_else(ApiError::no_such_resource)?;
    let agent = incoming.header(USER_AGENT);
    let options = WriteOptions::parse(Write::Create, &incoming.query, agent)?;
    let body = write::posted(writes, request, &request.kind, body, &options)?;
    let body = review::mutate_posted(&writes.access, request, body, &options).await?;
    let pod = ResourceRequest {
        kind: Arc::clone(pods),
        target: Target::Part(Subresource::Binding),
        name,
        ..request.clone()
    };
    bind(writes, &pod, request, &body, &options).await
}

/// Reports whether a read returns objects that aren't stored.
pub(crate) fn is_virtual(reads: &Reads, request: &ResourceRequest) -> bool {
    let kind = &request.kind;
    let is_stored = || {
        let key = Key::of(&kind.storage, "", &request.name);
        request.verb == Verb::Get && reads.store.get(&key).is_some()
    };
    kind.has(Trait::Virtual) || kind.has(Trait::OwnRows) && !is_stored()
}

/// Responds to a read of objects that aren't stored, in a list together with the stored ones.
///
/// # Errors
///
/// 404 for an unknown name.
pub(crate) fn read_virtual(
    reads: &Reads,
    request: &ResourceRequest,
    query: &Query,
) -> ApiResult<Value> {
    let kind = &request.kind;
    let mut objects = match &*kind.storage {
        "apiservices" => api_services(reads),
        "componentstatuses" => component_statuses(),
        _ => return Err(ApiError::method_not_allowed()),
    };
    if request.verb == Verb::List {
        if kind.has(Trait::OwnRows) {
            let (_, stored) = reads.store.list(&kind.storage, "");
            objects.extend(stored.iter().map(|object| object.value()));
            objects.sort_by_cached_key(|it| text_at(it, "/metadata/name").to_owned());
        }
        let selection = selection(reads, kind, query)?;
        objects.retain(|object| {
            let draft = Draft::from_value(kind, object.clone());
            let key = Key::new(kind, "", draft.metadata().name());
            selection.matches(&Object::commit(kind, key, draft, 0))
        });
        return Ok(json!({
            "kind": kind.list_kind(),
            "apiVersion": kind.api_version(),
            "metadata": {"resourceVersion": ""},
            "items": objects,
        }));
    }
    let mut objects = objects.into_iter();
    let found = objects.find(|object| text_at(object, "/metadata/name") == request.name);
    let mut found = found.ok_or_else(|| ApiError::not_found(kind, &request.name))?;
    found["kind"] = json!(kind.kind);
    found["apiVersion"] = json!(kind.api_version());
    Ok(found)
}

/// Returns the servers of the group versions: this one for all.
fn api_services(reads: &Reads) -> Vec<Value> {
    let custom = reads.custom_kinds();
    let built_in = kinds::group_versions(&*KINDS);
    let built_in = built_in.into_iter().map(|it| (it, GROUP_PRIORITY));
    let custom = kinds::group_versions(custom.rows());
    let custom = custom.into_iter().map(|it| (it, CUSTOM_GROUP_PRIORITY));
    let service = |((group, version), priority): ((&str, &str), i32)| {
        json!({
            "metadata": {
                "name": format!("{version}.{group}"),
                "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"},
            },
            "spec": {
                "group": group,
                "version": version,
                "groupPriorityMinimum": priority,
                "versionPriority": VERSION_PRIORITY,
            },
            "status": {"conditions": [{
                "type": "Available",
                "status": "True",
                "reason": "Local",
                "message": "Local APIServices are always available",
                "lastTransitionTime": now_text(reads.clock()),
            }]},
        })
    };
    built_in.chain(custom).map(service).collect()
}

/// Returns the statuses of the control plane's components: all of them are healthy.
fn component_statuses() -> Vec<Value> {
    let status = |(name, message): (&str, &str)| {
        json!({
            "metadata": {"name": name},
            "conditions": [{"type": "Healthy", "status": "True", "message": message}],
        })
    };
    let components = [
        ("controller-manager", "ok"),
        ("etcd-0", "ok"),
        ("scheduler", "ok"),
    ];
    components.into_iter().map(status).collect()
}
