//! From method and path to what is asked for.

use http::Method;

use crate::kinds::{self, Kind, Subresource};
use crate::query::Query;
use crate::status::{ApiError, ApiResult};

/// Which part of an object a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The object itself, or its collection.
    Object,
    /// A subresource that shows or changes a part of the object.
    Status,
    /// See [`Subresource::Scale`].
    Scale,
    /// See [`Subresource::Binding`].
    Binding,
    /// See [`Subresource::Eviction`].
    Eviction,
    /// See [`Subresource::Finalize`].
    Finalize,
}

/// What a request does, in the words of authorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read a collection.
    List,
    /// Follow a collection.
    Watch,
    /// Create an object.
    Create,
    /// Replace an object.
    Update,
    /// Change parts of an object.
    Patch,
    /// Delete an object.
    Delete,
    /// Delete a collection.
    DeleteCollection,
}

/// A request about resources.
#[derive(Clone, Debug)]
pub struct ResourceRequest {
    /// The row of the resource.
    pub kind: &'static Kind,
    /// The part of the object.
    pub target: Target,
    /// The namespace; empty for all and for cluster-scoped resources.
    pub namespace: String,
    /// The object's name; empty for collections.
    pub name: String,
    /// What is to be done.
    pub verb: Verb,
}

/// What a path leads to.
#[derive(Clone, Debug)]
pub enum Route {
    /// Objects.
    Resource(ResourceRequest),
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(&'static str),
    /// `/api/v1` and `/apis/GROUP/VERSION`.
    Resources(&'static str, &'static str),
    /// `/healthz`, `/livez`, `/readyz` and what is below them.
    Health,
    /// `/version`.
    Version,
    /// `/openapi/v3`, or the document of one group version below it.
    OpenApi(Option<(&'static str, &'static str)>),
    /// `/`.
    Root,
    /// Nothing that the server knows: a plain text 404.
    Unknown,
}

impl Target {
    fn of(subresource: &str, kind: &Kind) -> Option<Self> {
        let (target, needed) = match subresource {
            "status" => (Self::Status, Subresource::Status),
            "scale" => (Self::Scale, Subresource::Scale),
            "binding" => (Self::Binding, Subresource::Binding),
            "eviction" => (Self::Eviction, Subresource::Eviction),
            "finalize" => (Self::Finalize, Subresource::Finalize),
            _ => return None,
        };
        kind.serves(needed).then_some(target)
    }

    /// The subresource's name in URLs; empty for the object itself.
    pub fn subresource(self) -> &'static str {
        match self {
            Self::Object => "",
            Self::Status => Subresource::Status.name(),
            Self::Scale => Subresource::Scale.name(),
            Self::Binding => Subresource::Binding.name(),
            Self::Eviction => Subresource::Eviction.name(),
            Self::Finalize => Subresource::Finalize.name(),
        }
    }
}

impl Verb {
    /// The verb as audit logs and roles spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// Finds what a request is about.
///
/// # Errors
///
/// 404 for a resource that isn't served, 405 for a method that it doesn't allow.
pub fn route(method: &Method, path: &str, query: &Query) -> ApiResult<Route> {
    if path == "/" {
        return Ok(Route::Root);
    }
    let trimmed = path.strip_suffix('/').unwrap_or(path);
    let segments: Vec<&str> = trimmed.split('/').skip(1).collect();
    if segments.iter().any(|s| s.is_empty()) {
        return Ok(Route::Unknown);
    }
    match segments.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => Ok(Route::Health),
        ["version"] => Ok(Route::Version),
        ["openapi", "v3"] => Ok(Route::OpenApi(None)),
        ["openapi", "v3", "api", version] => Ok(open_api("", version)),
        ["openapi", "v3", "apis", group, version] => Ok(open_api(group, version)),
        ["api"] => Ok(Route::CoreVersions),
        ["apis"] => Ok(Route::Groups),
        ["apis", group] => Ok(served(group, None).map_or(Route::Unknown, |(g, _)| Route::Group(g))),
        ["api", version, rest @ ..] => below("", version, rest, method, query),
        ["apis", group, version, rest @ ..] => below(group, version, rest, method, query),
        _ => Ok(Route::Unknown),
    }
}

fn open_api(group: &str, version: &str) -> Route {
    served(group, Some(version)).map_or(Route::Unknown, |gv| Route::OpenApi(Some(gv)))
}

fn served(group: &str, version: Option<&str>) -> Option<(&'static str, &'static str)> {
    kinds::group_versions()
        .into_iter()
        .find(|(g, v)| *g == group && version.is_none_or(|version| version == *v))
}

fn below(
    group: &str,
    version: &str,
    rest: &[&str],
    method: &Method,
    query: &Query,
) -> ApiResult<Route> {
    let Some((group, version)) = served(group, Some(version)) else {
        return Ok(Route::Unknown);
    };
    let (namespace, rest) = match rest {
        [] => return Ok(Route::Resources(group, version)),
        ["namespaces", _, "status" | "finalize"] if group.is_empty() => ("", rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        _ => ("", rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (*plural, "", ""),
        [plural, name] => (*plural, *name, ""),
        [plural, name, subresource] => (*plural, *name, *subresource),
        _ => return Err(ApiError::no_such_resource()),
    };
    let kind = kinds::by_resource(group, version, plural).ok_or_else(ApiError::no_such_resource)?;
    if kind.namespaced && namespace.is_empty() && !name.is_empty()
        || !kind.namespaced && !namespace.is_empty()
    {
        return Err(ApiError::no_such_resource());
    }
    let target = if subresource.is_empty() {
        Target::Object
    } else {
        Target::of(subresource, kind).ok_or_else(ApiError::no_such_resource)?
    };
    let all_namespaces = kind.namespaced && namespace.is_empty();
    let verb = verb(method, target, name, all_namespaces, query)?;
    Ok(Route::Resource(ResourceRequest {
        kind,
        target,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        verb,
    }))
}

fn verb(
    method: &Method,
    target: Target,
    name: &str,
    all_namespaces: bool,
    query: &Query,
) -> ApiResult<Verb> {
    let collection = name.is_empty();
    let posted = matches!(target, Target::Binding | Target::Eviction);
    let verb = match (method.as_str(), collection) {
        ("GET", true) if query.flag("watch") => Verb::Watch,
        ("GET", true) => Verb::List,
        ("GET", false) if !posted => Verb::Get,
        ("POST", true) if !all_namespaces => Verb::Create,
        ("POST", false) if posted => Verb::Create,
        ("PUT", false) if !posted => Verb::Update,
        ("PATCH", false) if !posted => Verb::Patch,
        ("DELETE", false) if target == Target::Object => Verb::Delete,
        ("DELETE", true) if !all_namespaces => Verb::DeleteCollection,
        _ => return Err(ApiError::method_not_allowed()),
    };
    if target == Target::Finalize && verb != Verb::Update {
        return Err(ApiError::method_not_allowed());
    }
    Ok(verb)
}
