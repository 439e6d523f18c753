//! Routing of paths and methods.

mod custom;

use std::sync::Arc;

use http::Method;
use kube_test_control_plane_api::kinds::{self, KINDS, Kind, Subresource};
use kube_test_control_plane_api::query::Query;
use kube_test_control_plane_api::status::{ApiError, ApiResult};

use crate::auth::Identity;
use crate::custom::CustomIndex;
pub use kube_test_control_plane_api::kinds::{Target, Verb};

/// A resource request.
#[derive(Clone, Debug)]
pub struct ResourceRequest {
    /// The row of the resource.
    pub kind: Arc<Kind>,
    /// The part of the object.
    pub target: Target,
    /// The namespace; empty for all and for cluster-scoped resources.
    pub namespace: String,
    /// The object's name; empty for collections. A watch of one object has it too.
    pub name: String,
    /// The verb.
    pub verb: Verb,
    /// The user; `None` for the server itself, which may do everything.
    pub user: Option<Arc<Identity>>,
}

/// Destination of a path.
#[derive(Clone, Debug)]
pub enum Route {
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
    /// `/`.
    Root,
    /// An unknown path: a plain text 404.
    Unknown,
}

/// Returns the route of a request for a built-in resource.
///
/// # Errors
///
/// 404 for an unknown resource, 405 for an unsupported method.
pub fn route(method: &Method, path: &str, query: &Query) -> ApiResult<Route> {
    route_among(method, path, query, &CustomIndex::default())
}

/// Returns the route of a request for a built-in or a custom resource.
///
/// # Errors
///
/// 404 for an unknown resource, 405 for an unsupported method.
pub(crate) fn route_among(
    method: &Method,
    path: &str,
    query: &Query,
    custom: &CustomIndex,
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
        ["openapi", "v3"] => Ok(Route::OpenApi(None)),
        ["openapi", "v3", "api", version] => Ok(open_api(custom, "", version)),
        ["openapi", "v3", "apis", group, version] => Ok(open_api(custom, group, version)),
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
        ["api", version, rest @ ..] => below("", version, rest, method, query),
        ["apis", group, version, rest @ ..]
            if serves(custom.rows(), group, Some(version)) && !serves(&*KINDS, group, None) =>
        {
            custom::below(custom, (group, version), rest, method, query)
        }
        ["apis", group, version, rest @ ..] => below(group, version, rest, method, query),
        _ => Ok(Route::Unknown),
    }
}

fn open_api(custom: &CustomIndex, group: &str, version: &str) -> Route {
    let found = Some(version);
    if serves(&*KINDS, group, found) || serves(custom.rows(), group, found) {
        Route::OpenApi(Some((group.to_owned(), version.to_owned())))
    } else {
        Route::Unknown
    }
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
    group: &str,
    version: &str,
    rest: &[&str],
    method: &Method,
    query: &Query,
) -> ApiResult<Route> {
    if !serves(&*KINDS, group, Some(version)) {
        // Unknown paths below a served group have a separate error.
        return if serves(&*KINDS, group, None) {
            Err(ApiError::no_such_resource())
        } else {
            Ok(Route::Unknown)
        };
    }
    if rest.iter().any(|segment| segment.is_empty()) {
        return Err(ApiError::no_such_resource());
    }
    if let ["watch", rest @ ..] = rest
        && !rest.is_empty()
    {
        let route = below(group, version, rest, method, query)?;
        return watched(route);
    }
    let (namespace, rest) = match rest {
        [] => return Ok(Route::Resources(group.to_owned(), version.to_owned())),
        ["namespaces", _, "status" | "finalize"] if group.is_empty() => ("", rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        _ => ("", rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (*plural, "", ""),
        [plural, name] => (*plural, *name, ""),
        [plural, name, subresource] => (*plural, *name, *subresource),
        [plural, name, "proxy", ..] => (*plural, *name, Subresource::Proxy.name()),
        _ => return Err(ApiError::no_such_resource()),
    };
    let kind = kinds::by_resource(group, version, plural).ok_or_else(ApiError::no_such_resource)?;
    let all_namespaces = kind.namespaced && namespace.is_empty();
    if all_namespaces && (!name.is_empty() || !kind.allows(Verb::List))
        || !kind.namespaced && !namespace.is_empty()
    {
        return Err(ApiError::no_such_resource());
    }
    let target = if subresource.is_empty() {
        Target::Object
    } else {
        let mut served = kind.subresources.iter();
        let found = served.find(|s| s.name() == subresource);
        Target::Part(*found.ok_or_else(ApiError::no_such_resource)?)
    };
    let verb = verb(method, target, name.is_empty(), query)?;
    let allowed = match target.part() {
        Some(part) => part.verbs().contains(&verb),
        None => kind.allows(verb) && !(all_namespaces && is_write(verb)),
    };
    if !allowed {
        return Err(ApiError::method_not_allowed());
    }
    Ok(Route::Resource(ResourceRequest {
        kind: Arc::clone(kind),
        target,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        verb,
        user: None,
    }))
}

/// Converts a route to a watch, for the legacy form with `watch` in the path: of a collection or of
/// one object.
fn watched(route: Route) -> ApiResult<Route> {
    match route {
        Route::Resource(request) if request.target == Target::Object => match request.verb {
            Verb::Get | Verb::List | Verb::Watch if request.kind.allows(Verb::Watch) => {
                Ok(Route::Resource(ResourceRequest {
                    verb: Verb::Watch,
                    ..request
                }))
            }
            _ => Err(ApiError::method_not_allowed()),
        },
        _ => Err(ApiError::no_such_resource()),
    }
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
