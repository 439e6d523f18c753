//! `serviceaccounts/NAME/token`: creates service account tokens.

use kube_apimachinery::time;
use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::members::object_mut;
use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::status::{ApiError, ApiResult, FieldError, details};
use serde::Deserialize;
use serde_json::{Value, json};

use super::service_account::find;
use crate::auth::service_account::{Bound, Claims, ISSUER, Reference};
use crate::route::ResourceRequest;
use crate::state::{Access, Reads};

/// Default lifetime of a token in seconds.
const DEFAULT_SECONDS: i64 = 3600;

/// The shortest and longest lifetime of a token in seconds.
const SECONDS_MIN: i64 = 600;
const SECONDS_MAX: i64 = 1 << 32;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    audiences: Option<Vec<String>>,
    expiration_seconds: Option<i64>,
    bound_object_ref: Option<BoundObject>,
}

/// The object whose deletion invalidates the token.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BoundObject {
    kind: String,
    api_version: String,
    name: String,
    uid: String,
}

/// Creates a token for the request's service account and returns the completed request.
///
/// # Errors
///
/// 404 for a missing account or bound object, 422 for a lifetime out of range, 409 for a bound
/// object with another uid.
///
/// Upstream: `TokenREST.Create`.
pub(crate) fn request_token(
    access: &Access,
    request: &ResourceRequest,
    mut draft: Draft,
) -> ApiResult<Value> {
    check_names(request, &draft)?;
    let (namespace, name) = (&request.namespace, &request.name);
    let account = find(&access.reads, "serviceaccounts", namespace, name);
    let account = account.ok_or_else(|| ApiError::not_found(&request.kind, name))?;
    let spec = draft.value.get("spec").cloned().unwrap_or_default();
    // The decoder has checked the types.
    let spec: Spec = serde_json::from_value(spec).unwrap_or_default();
    let seconds = spec.expiration_seconds.unwrap_or(DEFAULT_SECONDS);
    check_seconds(seconds)?;
    let mut audiences = spec.audiences.unwrap_or_default();
    if audiences.is_empty() {
        audiences.push(ISSUER.to_owned());
    }
    let mut bound = Bound {
        namespace: namespace.clone(),
        serviceaccount: Reference::to(&account),
        node: None,
        pod: None,
        secret: None,
    };
    if let Some(object) = &spec.bound_object_ref {
        bind_token(&access.reads, &mut bound, object)?;
    }
    let now = access.reads.clock().now();
    let claims = Claims::new(
        bound,
        audiences.clone(),
        access.random.new_uid(),
        now,
        seconds,
    );
    let key = access
        .token_key()
        .map_err(|err| ApiError::internal(err.to_string()));
    let token = serde_json::to_value(&claims)
        .map_err(|err| ApiError::internal(format!("encoding the claims of a token: {err}")))
        .and_then(|claims| {
            let signed = key?.sign(&claims);
            signed.map_err(|err| ApiError::internal(err.to_string()))
        })?;
    let metadata = draft.metadata_mut();
    for (member, value) in [
        ("name", json!(name)),
        ("namespace", json!(namespace)),
        ("uid", json!(account.metadata().uid())),
        ("creationTimestamp", json!(time::format_seconds(now))),
    ] {
        metadata.insert(member.to_owned(), value);
    }
    let spec = object_mut(&mut draft.value, "spec");
    spec.insert("audiences".to_owned(), json!(audiences));
    spec.insert("expirationSeconds".to_owned(), json!(seconds));
    let expires = jiff::Timestamp::from_second(claims.exp).unwrap_or(now);
    draft.value["status"] = json!({
        "token": token,
        "expirationTimestamp": time::format_seconds(expires),
    });
    Ok(draft.value)
}

/// Binds a token to an object besides its service account.
fn bind_token(reads: &Reads, bound: &mut Bound, object: &BoundObject) -> ApiResult<()> {
    let BoundObject { kind, name, .. } = object;
    let (group, version) = object
        .api_version
        .split_once('/')
        .unwrap_or(("", &object.api_version));
    let storage = match (group, kind.as_str()) {
        ("", "Pod") => "pods",
        ("", "Secret") => "secrets",
        ("", "Node") => "nodes",
        _ => {
            return Err(ApiError::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        }
    };
    let row = kinds::by_storage(storage).ok_or_else(ApiError::no_such_resource)?;
    let namespace = if row.namespaced { &bound.namespace } else { "" };
    let found = find(reads, storage, namespace, name);
    let found = found.ok_or_else(|| ApiError::not_found(row, name))?;
    let reference = Reference::to(&found);
    if !object.uid.is_empty() && object.uid != reference.uid {
        let why = format!(
            "the UID in the bound object reference ({}) does not match the UID in record. The \
             object might have been deleted and then recreated",
            object.uid
        );
        return Err(ApiError {
            details: Some(details(name, "", kind)),
            ..ApiError::new(
                409,
                "Conflict",
                format!("Operation cannot be fulfilled on {kind} {name:?}: {why}"),
            )
        });
    }
    match storage {
        "pods" => {
            let account = &bound.serviceaccount.name;
            if found.text("/spec/serviceAccountName") != Some(account) {
                return Err(ApiError::bad_request(format!(
                    "cannot bind token for serviceaccount {account:?} to pod running with \
                     different serviceaccount name."
                )));
            }
            let node = found.text("/spec/nodeName").filter(|node| !node.is_empty());
            bound.node = node.map(|name| Reference {
                name: name.to_owned(),
                uid: find(reads, "nodes", "", name)
                    .map(|node| node.metadata().uid().to_owned())
                    .unwrap_or_default(),
            });
            bound.pod = Some(reference);
        }
        "secrets" => bound.secret = Some(reference),
        _ => bound.node = Some(reference),
    }
    Ok(())
}

fn check_names(request: &ResourceRequest, draft: &Draft) -> ApiResult<()> {
    let metadata = draft.metadata();
    for (member, found, wanted) in [
        ("name", metadata.name(), &request.name),
        ("namespace", metadata.namespace(), &request.namespace),
    ] {
        if !found.is_empty() && found != wanted {
            let detail = format!("must match the service account {member} if specified");
            let field = format!("metadata.{member}");
            let error = FieldError::invalid(field, &json!(found), &detail);
            return Err(invalid(&request.name, error));
        }
    }
    Ok(())
}

fn check_seconds(seconds: i64) -> ApiResult<()> {
    let detail = if seconds < SECONDS_MIN {
        "may not specify a duration less than 10 minutes"
    } else if seconds > SECONDS_MAX {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    let error = FieldError::invalid("spec.expirationSeconds", &json!(seconds), detail);
    Err(invalid("", error))
}

fn invalid(name: &str, error: FieldError) -> ApiError {
    ApiError::invalid_kind("TokenRequest", "authentication.k8s.io", name, &[error])
}
