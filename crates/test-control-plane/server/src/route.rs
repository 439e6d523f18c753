//! Routing of paths and methods.

mod custom;
mod remarks;
mod request;

use std::sync::Arc;

use http::Method;
use kube_test_control_plane_api::kinds::{self, KINDS, Kind, Subresource, Target, Verb};
use kube_test_control_plane_api::query::Query;
use kube_test_control_plane_api::status::{ApiError, ApiResult};

use crate::resource_path::ResourcePath;
use crate::state::CustomIndex;

pub(crate) use remarks::Remarks;
pub(crate) use request::ResourceRequest;

/// Destination of a path.
#[derive(Clone, Debug)]
pub(crate) enum Route {
    /// Objects.
    Resource(ResourceRequest),
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1` and `/apis/GROUP/VERSION`.
    Resources(String, String),
    /// `/healthz`, `/livez`, `/readyz` and their individual checks.
    Health,
    /// `/metrics`.
    Metrics,
    /// `/.well-known/openid-configuration`.
    OpenIdConfiguration,
    /// `/openid/v1/jwks`.
    TokenKeys,
    /// `/version`.
    Version,
    /// `/openapi/v3`, or the document of one group version below it.
    OpenApi(Option<(String, String)>),
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/`.
    Root,
    /// An unknown path: a plain text 404.
    Unknown,
}

/// Returns the route of a request for a built-in or a custom resource.
///
/// # Errors
///
/// 404 for an unknown resource, 405 for an unsupported method.
pub(crate) fn route(
    method: &Method,
    path: &str,
    query: &Query,
    custom: &CustomIndex,
    remarks: &Remarks,
) -> ApiResult<Route> {
    if path == "/" {
        return Ok(Route::Root);
    }
    let trimmed = path.strip_suffix('/').unwrap_or(path);
    let segments: Vec<&str> = trimmed.split('/').skip(1).collect();
    match segments.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => Ok(Route::Health),
        ["version"] => Ok(Route::Version),
        [".well-known", "openid-configuration"] => Ok(Route::OpenIdConfiguration),
        ["openid", "v1", "jwks"] => Ok(Route::TokenKeys),
        ["metrics"] => Ok(Route::Metrics),
        ["openapi", "v2"] => Ok(Route::OpenApiV2),
        ["openapi", "v3"] => Ok(Route::OpenApi(None)),
        ["openapi", "v3", "api", version] => Ok(open_api("", version)),
        ["openapi", "v3", "apis", group, version] => Ok(open_api(group, version)),
        ["api"] => Ok(Route::CoreVersions),
        ["apis"] => Ok(Route::Groups),
        ["apis", group] => {
            let is_served = serves(&*KINDS, group, None) || serves(custom.rows(), group, None);
            Ok(if is_served {
                Route::Group((*group).to_owned())
            } else {
                Route::Unknown
            })
        }
        ["api" | "apis", ..] => match ResourcePath::parse(path) {
            Some(found) => below(&found, method, query, custom, remarks),
            None => Ok(Route::Unknown),
        },
        _ => Ok(Route::Unknown),
    }
}

fn open_api(group: &str, version: &str) -> Route {
    Route::OpenApi(Some((group.to_owned(), version.to_owned())))
}

/// Returns true if one of the rows has the group and, if it is given, the version.
fn serves<'a>(
    rows: impl IntoIterator<Item = &'a Arc<Kind>>,
    group: &str,
    version: Option<&str>,
) -> bool {
    let mut rows = rows.into_iter();
    rows.any(|row| row.group == group && version.is_none_or(|version| version == row.version))
}

fn below(
    path: &ResourcePath<'_>,
    method: &Method,
    query: &Query,
    custom: &CustomIndex,
    remarks: &Remarks,
) -> ApiResult<Route> {
    let (group, version) = (path.group, Some(path.version));
    if serves(&*KINDS, group, version) {
        if path.plural.is_empty() && !path.has_gap {
            return Ok(Route::Resources(group.to_owned(), path.version.to_owned()));
        }
        return built_in(path, method, query).map(Route::Resource);
    }
    if serves(&*KINDS, group, None) {
        // Unknown paths below a served group have a separate error.
        return Err(ApiError::no_such_resource());
    }
    if !serves(custom.rows(), group, version) && path.plural.is_empty() {
        return Ok(Route::Unknown);
    }
    if path.plural.is_empty() && !path.has_gap {
        return Ok(Route::Resources(group.to_owned(), path.version.to_owned()));
    }
    let request = custom::request(custom, path, method, query, remarks)?;
    Ok(request.map_or(Route::Unknown, Route::Resource))
}

/// Returns the request for a built-in resource.
fn built_in(path: &ResourcePath<'_>, method: &Method, query: &Query) -> ApiResult<ResourceRequest> {
    let is_proxied = path.subresource == Subresource::Proxy.name();
    let is_watched = path.verb == "watch";
    let kind = kinds::by_resource(path.group, path.version, path.plural);
    let kind = kind
        .filter(|_| path.verb.is_empty() || is_watched)
        .filter(|_| !path.has_gap && (!path.has_more || is_proxied))
        .ok_or_else(ApiError::no_such_resource)?;
    let namespace = match path.plural {
        "namespaces" => "",
        _ => path.namespace,
    };
    let all_namespaces = kind.namespaced && namespace.is_empty();
    if all_namespaces && (!path.name.is_empty() || !kind.allows(Verb::List))
        || !kind.namespaced && !namespace.is_empty()
    {
        return Err(ApiError::no_such_resource());
    }
    let target = if path.subresource.is_empty() {
        Target::Object
    } else {
        let mut served = kind.subresources.iter();
        let found = served.find(|s| s.name() == path.subresource);
        Target::Part(*found.ok_or_else(ApiError::no_such_resource)?)
    };
    let mut verb = verb(method, target, path.name.is_empty(), query)?;
    let allowed = match target.part() {
        Some(part) => part.verbs().contains(&verb),
        None => kind.allows(verb) && !(all_namespaces && is_write(verb)),
    };
    if !allowed {
        return Err(ApiError::method_not_allowed());
    }
    if is_watched {
        // The legacy form: of a collection or of one object.
        if target != Target::Object {
            return Err(ApiError::no_such_resource());
        }
        if is_write(verb) || !kind.allows(Verb::Watch) {
            return Err(ApiError::method_not_allowed());
        }
        verb = Verb::Watch;
    }
    Ok(ResourceRequest {
        kind: Arc::clone(kind),
        target,
        namespace: namespace.to_owned(),
        name: path.name.to_owned(),
        verb,
        user: None,
        requested: target,
        remarks: Remarks::default(),
        admission_revision: None,
        begun: None,
    })
}

/// Returns the verb of a method, whether or not it is allowed.
fn verb(method: &Method, target: Target, collection: bool, query: &Query) -> ApiResult<Verb> {
    Ok(match (method.as_str(), collection) {
        ("GET", true) if query.flag("watch") => Verb::Watch,
        ("GET", true) => Verb::List,
        ("GET", false) => Verb::Get,
        ("POST", true) => Verb::Create,
        ("POST", false) if target != Target::Object => Verb::Create,
        ("PUT", false) => Verb::Update,
        ("PATCH", false) => Verb::Patch,
        ("DELETE", false) => Verb::Delete,
        ("DELETE", true) => Verb::DeleteCollection,
        _ => return Err(ApiError::method_not_allowed()),
    })
}

fn is_write(verb: Verb) -> bool {
    !matches!(verb, Verb::Get | Verb::List | Verb::Watch)
}
