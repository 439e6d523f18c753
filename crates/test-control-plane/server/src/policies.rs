//! Admission policies: the review of a request by the stored policies.
//!
//! Compiled policies are below, in the state; the handlers above call the functions of this room. It
//! reads objects and permissions, and changes nothing.

mod authorizer;
mod input;
mod mutating;
mod params;
mod question;
mod validating;

use std::sync::Arc;

use kube_test_control_plane_api::kinds::{Subresource, Target, Verb, stored};
use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::options::{DeleteOptions, WriteOptions};
use kube_test_control_plane_api::policies::Operation;
use kube_test_control_plane_api::status::ApiResult;
use kube_test_control_plane_api::views;
use serde_json::Value;

use crate::route::ResourceRequest;
use crate::state::Access;
use input::{Objects, served};

/// The members of metadata that the server sets after mutating admission.
const SET_LATER: [&str; 3] = ["creationTimestamp", "generation", "uid"];

/// Changes a created or changed object before its validation. Returns true if a policy changed it.
///
/// # Errors
///
/// A policy fails.
pub(crate) fn mutate_write(
    access: &Arc<Access>,
    request: &ResourceRequest,
    old: Option<&Draft>,
    new: &mut Draft,
    options: &WriteOptions,
) -> ApiResult<bool> {
    let is_scale = request.requested == Target::Part(Subresource::Scale);
    if !has_policies(access) || is_scale || request.is_posted() && old.is_some() {
        return Ok(false);
    }
    let mut object = served(request, new);
    let mut set_later = Vec::new();
    if old.is_none()
        && let Some(metadata) = object["metadata"].as_object_mut()
    {
        let removed = SET_LATER.map(|name| Some((name, metadata.remove(name)?)));
        set_later.extend(removed.into_iter().flatten());
    }
    let mut objects = Objects {
        operation: operation(old.is_some()),
        object: Some(object),
        old_object: old.map(|old| served(request, old)),
        options: Some(&options.sent),
        dry_run: options.dry_run,
    };
    let name = new.metadata().name().to_owned();
    if !mutating::mutate(access, request, &name, &mut objects)? {
        return Ok(false);
    }
    let mut object = objects.object.unwrap_or_default();
    for (name, value) in set_later {
        object["metadata"][name] = value;
    }
    views::to_stored(&request.kind, &mut object);
    *new = Draft::from_value(stored(&request.kind), object);
    Ok(true)
}

/// Changes a scale before its validation.
///
/// # Errors
///
/// A policy fails.
pub(crate) fn mutate_scale(
    access: &Arc<Access>,
    request: &ResourceRequest,
    old: Value,
    new: Value,
    options: &WriteOptions,
) -> ApiResult<Value> {
    if !has_policies(access) {
        return Ok(new);
    }
    let mut objects = Objects {
        operation: Operation::Update,
        object: Some(new),
        old_object: Some(old),
        options: Some(&options.sent),
        dry_run: options.dry_run,
    };
    mutating::mutate(access, request, &request.name, &mut objects)?;
    Ok(objects.object.unwrap_or_default())
}

fn operation(has_old: bool) -> Operation {
    if has_old {
        Operation::Update
    } else {
        Operation::Create
    }
}

/// Reviews a created or changed object before it is stored.
///
/// # Errors
///
/// A policy denies the request.
pub(crate) fn review_write(
    access: &Arc<Access>,
    request: &ResourceRequest,
    old: Option<&Draft>,
    new: &Draft,
    options: &WriteOptions,
) -> ApiResult<()> {
    // A post to a subresource was reviewed with its body.
    if !has_policies(access) || request.is_posted() && old.is_some() {
        return Ok(());
    }
    let objects = Objects {
        operation: operation(old.is_some()),
        object: Some(served(request, new)),
        old_object: old.map(|old| served(request, old)),
        options: Some(&options.sent),
        dry_run: options.dry_run,
    };
    validating::review(access, request, new.metadata().name(), &objects)
}

/// Reviews a body posted to a subresource, or of a kind that is never stored.
///
/// # Errors
///
/// A policy denies the request.
pub(crate) fn review_posted(
    access: &Arc<Access>,
    request: &ResourceRequest,
    body: &Value,
    options: &WriteOptions,
) -> ApiResult<()> {
    if !has_policies(access) {
        return Ok(());
    }
    let objects = Objects {
        operation: Operation::Create,
        object: Some(body.clone()),
        old_object: None,
        options: Some(&options.sent),
        dry_run: options.dry_run,
    };
    let name = body.pointer("/metadata/name").and_then(Value::as_str);
    validating::review(access, request, name.unwrap_or(&request.name), &objects)
}

/// Reviews a deletion. That by an eviction was reviewed as an eviction.
///
/// # Errors
///
/// A policy denies the request.
pub(crate) fn review_deletion(
    access: &Arc<Access>,
    request: &ResourceRequest,
    old: &Draft,
    options: &DeleteOptions,
) -> ApiResult<()> {
    if !has_policies(access) || request.is_posted() {
        return Ok(());
    }
    let objects = Objects {
        operation: Operation::Delete,
        object: None,
        old_object: Some(served(request, old)),
        options: Some(&options.sent),
        dry_run: options.dry_run,
    };
    // As in upstream, the deletion of a collection names no object.
    let name = match request.verb {
        Verb::DeleteCollection => "",
        _ => &request.name,
    };
    validating::review(access, request, name, &objects)
}

/// Reviews a connection to a subresource.
///
/// # Errors
///
/// A policy denies the request.
pub(crate) fn review_connection(
    access: &Arc<Access>,
    request: &ResourceRequest,
    options: impl FnOnce() -> Value,
) -> ApiResult<()> {
    if !has_policies(access) {
        return Ok(());
    }
    let objects = Objects {
        operation: Operation::Connect,
        object: Some(options()),
        old_object: None,
        options: None,
        dry_run: false,
    };
    validating::review(access, request, &request.name, &objects)
}

/// Returns true if a policy was ever stored. Nearly all servers have none.
fn has_policies(access: &Access) -> bool {
    access.reads.store.admission_revision() > 0
}
