//! Paths of custom resources.

use std::sync::Arc;

use http::Method;
use kube_test_control_plane_api::custom::Definition;
use kube_test_control_plane_api::kinds::{Kind, Subresource, Target, Verb};
use kube_test_control_plane_api::query::Query;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::warnings;

use super::remarks::Remarks;
use super::request::ResourceRequest;
use crate::resource_path::ResourcePath;
use crate::state::CustomIndex;

/// Returns the request for a custom resource. An unknown resource is an unknown path, unlike in
/// built-in groups. An error gets the warning of a deprecated version, as every other response does.
pub(super) fn request(
    custom: &CustomIndex,
    path: &ResourcePath<'_>,
    method: &Method,
    query: &Query,
    remarks: &Remarks,
) -> ApiResult<Option<ResourceRequest>> {
    let (namespace, name) = (path.namespace, path.name);
    let kind = custom.by_resource(path.group, path.version, path.plural);
    let is_misplaced = |kind: &Kind| is_misplaced(kind.namespaced, path, method);
    let is_odd = path.has_more || !path.verb.is_empty();
    if !is_odd && kind.is_none() && is_unresolved(custom, path, method) {
        return Err(ApiError::internal_error("error resolving resource"));
    }
    let Some(kind) = kind.filter(|kind| !is_odd && !is_misplaced(kind)) else {
        return Ok(None);
    };
    let found = target(kind, path).and_then(|target| {
        let verb = verb(kind, method, target, name, query)?;
        Ok((target, verb))
    });
    let (target, verb) = found.inspect_err(|_| {
        if let Some(text) = warnings::deprecation(kind) {
            remarks.warn(text.to_owned());
        }
    })?;
    Ok(Some(ResourceRequest {
        kind: Arc::clone(kind),
        target,
        namespace: namespace.to_owned(),
        // The name of a new object is in its body.
        name: Some(name)
            .filter(|_| verb != Verb::Create)
            .unwrap_or_default()
            .to_owned(),
        verb,
        user: None,
        requested: target,
        remarks: Remarks::default(),
        admission_revision: None,
        begun: None,
    }))
}

/// Returns true if the path and the resource differ in their scope.
fn is_misplaced(namespaced: bool, path: &ResourcePath<'_>, method: &Method) -> bool {
    if namespaced {
        path.namespace.is_empty() && (!path.name.is_empty() || *method != Method::GET)
    } else {
        !path.namespace.is_empty()
    }
}

/// Returns true for the path of a resource that a definition names, but upstream can't resolve.
fn is_unresolved(custom: &CustomIndex, path: &ResourcePath<'_>, method: &Method) -> bool {
    let name = format!("{}.{}", path.plural, path.group);
    let mut definitions = custom.definitions().iter();
    definitions.any(|found| {
        let read = Definition(&found.value);
        *found.object.key.name == *name
            && read.is_unresolved(path.version)
            && !is_misplaced(read.is_namespaced(), path, method)
    })
}

fn target(kind: &Kind, path: &ResourcePath<'_>) -> ApiResult<Target> {
    if path.subresource.is_empty() {
        return Ok(Target::Object);
    }
    let mut served = kind.subresources.iter();
    let part = served.find(|part| part.name() == path.subresource);
    let part = part.ok_or_else(|| ApiError::not_found(kind, path.name))?;
    Ok(Target::Part(*part))
}

fn verb(
    kind: &Kind,
    method: &Method,
    target: Target,
    name: &str,
    query: &Query,
) -> ApiResult<Verb> {
    let is_part = matches!(
        target,
        Target::Part(Subresource::Status | Subresource::Scale)
    );
    let unsupported = |verb: &str| {
        let why = format!(
            "{verb} is not supported on resources of kind {:?}",
            kind.group_resource()
        );
        let mut error = ApiError::method_not_allowed();
        error.message = why;
        error.details = Some(kube_test_control_plane_api::status::details(
            "",
            &kind.group,
            &kind.plural,
        ));
        error
    };
    Ok(match (method.as_str(), name.is_empty()) {
        ("GET", true) if query.flag("watch") => Verb::Watch,
        ("GET", true) => Verb::List,
        ("GET", false) => Verb::Get,
        ("POST", _) if is_part => return Err(unsupported("create")),
        ("DELETE", _) if is_part => return Err(unsupported("delete")),
        ("POST", _) => Verb::Create,
        ("PUT", false) => Verb::Update,
        ("PATCH", false) => Verb::Patch,
        ("DELETE", false) => Verb::Delete,
        ("DELETE", true) => Verb::DeleteCollection,
        ("PUT" | "PATCH", true) => return Err(ApiError::bad_request("name must be provided")),
        _ => return Err(ApiError::method_not_allowed()),
    })
}
