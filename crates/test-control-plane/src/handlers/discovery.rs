//! What is served: group versions, their resources, health and version.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::kinds::{self, Kind, Subresource, Verb};
use crate::reply::{self, Reply};
use crate::route::Route;
use crate::status::{ApiError, ApiResult};

/// Answers everything that isn't about resources.
pub(crate) fn discover(route: &Route, method: &Method) -> ApiResult<Reply> {
    if matches!(route, Route::Unknown) {
        return Ok(reply::plain(StatusCode::NOT_FOUND, "404 page not found\n"));
    }
    if method != Method::GET && method != Method::HEAD {
        return Err(ApiError::method_not_allowed());
    }
    let value = match route {
        Route::Health => return Ok(reply::plain(StatusCode::OK, "ok")),
        Route::Version => version(),
        Route::CoreVersions => json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [],
        }),
        Route::Groups => json!({
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": kinds::group_versions()
                .into_iter()
                .filter(|(group, _)| !group.is_empty())
                .map(|(group, version)| api_group(group, version))
                .collect::<Vec<_>>(),
        }),
        Route::Group(group) => {
            let found = kinds::group_versions()
                .into_iter()
                .find(|(g, _)| g == group);
            let (group, version) = found.ok_or_else(ApiError::no_such_resource)?;
            let mut value = api_group(group, version);
            value["kind"] = json!("APIGroup");
            value["apiVersion"] = json!("v1");
            value
        }
        Route::Resources(group, version) => resources(group, version),
        Route::OpenApi(None) => super::open_api::index(),
        Route::OpenApi(Some((group, version))) => super::open_api::document(group, version),
        Route::Root => root(),
        Route::Unknown | Route::Resource(_) => return Err(ApiError::no_such_resource()),
    };
    Ok(reply::json_value(StatusCode::OK, &value))
}

/// The version that the server imitates.
fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "emulationMajor": "1",
        "emulationMinor": "36",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": "v1.36.2",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": "linux/amd64",
    })
}

fn root() -> Value {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for (group, version) in kinds::group_versions() {
        if !group.is_empty() {
            paths.push(format!("/apis/{group}"));
            paths.push(format!("/apis/{group}/{version}"));
        }
    }
    paths.extend(["/healthz", "/livez", "/openapi/v3", "/readyz", "/version"].map(str::to_owned));
    json!({"paths": paths})
}

fn api_group(group: &str, version: &str) -> Value {
    let version = json!({"groupVersion": format!("{group}/{version}"), "version": version});
    json!({"name": group, "versions": [version], "preferredVersion": version})
}

fn resources(group: &str, version: &str) -> Value {
    let mut list = Vec::new();
    for kind in kinds::KINDS
        .iter()
        .filter(|k| k.group == group && k.version == version)
    {
        list.push(resource(kind));
        list.extend(kind.subresources.iter().map(|s| subresource(kind, *s)));
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    let mut value = json!({
        "kind": "APIResourceList",
        "groupVersion": group_version,
        "resources": list,
    });
    if !group.is_empty() {
        value["apiVersion"] = json!("v1");
    }
    value
}

fn resource(kind: &Kind) -> Value {
    let mut value = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": names(kind.verbs),
    });
    if !kind.short_names.is_empty() {
        value["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        value["categories"] = json!(kind.categories);
    }
    value
}

fn subresource(kind: &Kind, subresource: Subresource) -> Value {
    let (group, version, responds) = subresource.responds(kind);
    let mut value = json!({
        "name": format!("{}/{}", kind.plural, subresource.name()),
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": responds,
        "verbs": names(subresource.verbs()),
    });
    if (group, version) != (kind.group, kind.version) {
        value["group"] = json!(group);
        value["version"] = json!(version);
    }
    value
}

fn names(verbs: &[Verb]) -> Vec<&'static str> {
    verbs.iter().map(|verb| verb.name()).collect()
}
