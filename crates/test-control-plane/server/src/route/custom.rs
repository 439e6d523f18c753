//! Paths of custom resources.

use std::sync::Arc;

use http::Method;
use kube_test_control_plane_api::kinds::{Kind, Subresource};
use kube_test_control_plane_api::query::Query;
use kube_test_control_plane_api::status::{ApiError, ApiResult};

use super::{ResourceRequest, Route, Target, Verb};
use crate::custom::CustomIndex;

/// Returns the route of a path below `/apis/GROUP/VERSION`. An unknown resource is an unknown path,
/// unlike in built-in groups.
pub(super) fn below(
    custom: &CustomIndex,
    (group, version): (&str, &str),
    rest: &[&str],
    method: &Method,
    query: &Query,
) -> ApiResult<Route> {
    let (namespace, rest) = match rest {
        [] => return Ok(Route::Resources(group.to_owned(), version.to_owned())),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        _ => ("", rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (*plural, "", ""),
        [plural, name] => (*plural, *name, ""),
        [plural, name, subresource] => (*plural, *name, *subresource),
        _ => return Ok(Route::Unknown),
    };
    let Some(kind) = custom.by_resource(group, version, plural) else {
        return Ok(Route::Unknown);
    };
    let is_misplaced = if kind.namespaced {
        namespace.is_empty() && (!name.is_empty() || *method != Method::GET)
    } else {
        !namespace.is_empty()
    };
    if is_misplaced {
        return Ok(Route::Unknown);
    }
    let target = match subresource {
        "" => Target::Object,
        found => {
            let mut served = kind.subresources.iter();
            let part = served.find(|part| part.name() == found);
            Target::Part(*part.ok_or_else(|| ApiError::not_found(kind, name))?)
        }
    };
    let verb = verb(kind, method, target, name, query)?;
    Ok(Route::Resource(ResourceRequest {
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
    }))
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
