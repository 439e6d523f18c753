//! Non-resource endpoints: discovery, health, version, metrics and the list of paths. All of them
//! are derived from the table of kinds.

mod aggregated;
mod health;
mod legacy;
mod metrics;

use std::sync::Arc;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderValue, Method, StatusCode};
use kube_test_control_plane_api::kinds::{self, Kind};
use kube_test_control_plane_api::open_api;
use kube_test_control_plane_api::response::negotiate;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::{Value, json};

use super::token_issuer::{open_id_configuration, token_keys};
use crate::config::EmulatedVersion;
use crate::incoming::Incoming;
use crate::reply::{self, Reply};
use crate::route::Route;
use crate::state::Access;
use health::health;
use metrics::metrics;

/// Responds to non-resource requests.
pub(crate) fn discover(access: &Access, route: &Route, incoming: &Incoming) -> ApiResult<Reply> {
    let reads = &*access.reads;
    // These paths accept any method.
    match route {
        Route::Unknown => return Ok(reply::unknown_path()),
        Route::Health => {
            let is_stopping = reads.stopping.is_cancelled();
            return Ok(health(is_stopping, &incoming.path, &incoming.query));
        }
        Route::Metrics => return Ok(metrics(reads)),
        Route::OpenApi(document) => {
            return Ok(super::open_api::answer(
                document.as_ref(),
                reads.custom_kinds().documents(),
                reads.behaviour().version,
                incoming,
                reads.clock().now(),
            ));
        }
        Route::OpenApiV2 => {
            return Ok(super::open_api::v2(
                reads.custom_kinds().documents(),
                reads.behaviour().version,
                incoming,
            ));
        }
        Route::Root => {
            let paths = root(&reads.served_kinds());
            return Ok(reply::indented(StatusCode::OK, &paths));
        }
        _ => {}
    }
    if incoming.method != Method::GET {
        return Err(ApiError::method_not_allowed());
    }
    match route {
        Route::OpenIdConfiguration => return Ok(open_id_configuration(&incoming.host)),
        Route::TokenKeys => return Ok(token_keys(access)),
        _ => {}
    }
    let accept = incoming.header(http::header::ACCEPT);
    if matches!(route, Route::CoreVersions | Route::Groups)
        && negotiate::wants_aggregated_discovery(accept)
    {
        let is_core = matches!(route, Route::CoreVersions);
        let rows = reads.served_kinds();
        return Ok(with_etag(&aggregated::discovery(&rows, is_core), incoming));
    }
    negotiate::check_route(accept, false)?;
    negotiate::check_plain(accept)?;
    let value = match route {
        Route::Version => {
            let version = version(reads.behaviour().version);
            return Ok(reply::indented(StatusCode::OK, &version));
        }
        Route::CoreVersions => legacy::core_versions(&incoming.host),
        Route::Groups => legacy::groups(&reads.served_kinds()),
        Route::Group(group) => legacy::group(&reads.served_kinds(), group),
        Route::Resources(group, version) => {
            legacy::resources(&reads.served_kinds(), group, version)
        }
        _ => return Err(ApiError::no_such_resource()),
    };
    Ok(reply::json_value(StatusCode::OK, &value))
}

/// Returns aggregated discovery with an `ETag` for conditional requests.
fn with_etag(value: &Value, incoming: &Incoming) -> Reply {
    let body = value.to_string();
    let etag = format!("\"{}\"", open_api::hash(body.as_bytes()));
    let known = incoming.header(IF_NONE_MATCH);
    let mut reply = if known == etag {
        reply::plain(StatusCode::NOT_MODIFIED, "")
    } else {
        reply::json_text(StatusCode::OK, body)
    };
    let headers = reply.headers_mut();
    let media_type = HeaderValue::from_static(negotiate::AGGREGATED_DISCOVERY);
    headers.insert(CONTENT_TYPE, media_type);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    if let Ok(value) = HeaderValue::from_str(&etag) {
        headers.insert(ETAG, value);
    }
    reply
}

/// Returns the emulated version.
fn version(version: EmulatedVersion) -> Value {
    let minor = version.minor();
    json!({
        "major": "1",
        "minor": minor.to_string(),
        "emulationMajor": "1",
        "emulationMinor": minor.to_string(),
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": (minor - 1).to_string(),
        "gitVersion": version.git_version(),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": "linux/amd64",
    })
}

/// Returns the non-resource paths.
fn root(rows: &[Arc<Kind>]) -> Value {
    let mut paths: Vec<String> = [
        "/.well-known/openid-configuration",
        "/api",
        "/api/v1",
        "/apis",
        "/apis/",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/",
        "/openid/v1/jwks",
        "/version",
    ]
    .map(str::to_owned)
    .to_vec();
    for (group, version) in kinds::group_versions(rows) {
        if !group.is_empty() {
            paths.push(format!("/apis/{group}"));
            paths.push(format!("/apis/{group}/{version}"));
        }
    }
    paths.extend(health::paths());
    paths.sort();
    paths.dedup();
    json!({"paths": paths})
}
