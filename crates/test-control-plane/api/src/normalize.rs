//! Normalization: decoding an object into upstream's types and encoding it again.

mod custom;
mod empties;
mod older_object;

use std::fmt::Display;

use kube_apimachinery::schema::{self, UnknownMembers};
use serde_json::{Value, json};

use crate::defaults::convert_daemon_set;
use crate::kinds::{Kind, Trait, type_in};
use crate::object::Draft;
use crate::settings::{EmulatedVersion, UnknownFields};
use crate::status::{ApiError, ApiResult};
pub use empties::Empties;
pub use older_object::OlderObject;

/// Checks the types of fields that the server overwrites in a new object.
///
/// # Errors
///
/// 400 for a value of the wrong type.
pub fn check_overwritten(kind: &Kind, draft: &Draft, version: EmulatedVersion) -> ApiResult<()> {
    const METADATA: [&str; 8] = [
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "namespace",
        "resourceVersion",
        "selfLink",
        "uid",
    ];
    if kind.custom.is_some() {
        return custom::check_metadata(kind, draft);
    }
    let Some(found) = type_in(kind, version.schema()) else {
        return Ok(());
    };
    let metadata = draft.value.get("metadata");
    let members = METADATA
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), metadata?.get(name)?.clone())));
    let mut sent = json!({"metadata": Value::Object(members.collect())});
    if let Some(status) = draft.value.get("status") {
        sent["status"] = status.clone();
    }
    match schema::normalize_owned(found, sent, UnknownMembers::Drop, "") {
        Ok(_) => Ok(()),
        Err(err) => Err(undecodable(kind, &err)),
    }
}

/// Normalizes an object to the types of a version.
///
/// # Errors
///
/// 400 for a value of the wrong type, and for unknown fields in strict mode.
pub fn normalize(
    kind: &Kind,
    draft: &mut Draft,
    version: EmulatedVersion,
    unknown_fields: UnknownFields,
) -> ApiResult<()> {
    if let Some(custom) = &kind.custom {
        return custom::complete(custom, kind, draft);
    }
    let unknown = match unknown_fields {
        UnknownFields::Keep => UnknownMembers::Keep,
        UnknownFields::Prune => UnknownMembers::Drop,
    };
    let Some(found) = type_in(kind, version.schema()) else {
        return Ok(());
    };
    let sent = std::mem::take(&mut draft.value);
    draft.value =
        schema::normalize_owned(found, sent, unknown, "").map_err(|err| undecodable(kind, &err))?;
    if &*kind.storage == "daemonsets" {
        convert_daemon_set(&mut draft.value).map_err(|why| undecodable(kind, &why))?;
    }
    if kind.has(Trait::RawData)
        && let Some(map) = draft.value.as_object_mut()
    {
        // Raw data is kept as text alongside the value.
        map.remove("data");
    }
    Ok(())
}

/// Normalizes an object with defaults that server-side apply has merged. The fields of a custom resource
/// are declared, and its nulls remain for the validation.
///
/// # Errors
///
/// As for [`normalize`].
pub fn normalize_applied(
    kind: &Kind,
    draft: &mut Draft,
    version: EmulatedVersion,
    unknown_fields: UnknownFields,
) -> ApiResult<()> {
    match &kind.custom {
        Some(custom) => custom::complete_applied(custom, kind, draft),
        None => normalize(kind, draft, version, unknown_fields),
    }
}

/// Drops the nulls of a custom resource that its schema doesn't allow.
pub fn drop_nulls(kind: &Kind, draft: &mut Draft) {
    if let Some(custom) = &kind.custom {
        custom.drop_nulls(&mut draft.value);
    }
}

/// Turns empty lists of a valid object into null, the form in which it is stored. Custom resources
/// keep them.
pub fn drop_empty_lists(kind: &Kind, draft: &mut Draft, version: EmulatedVersion) {
    if let Some(found) = type_in(kind, version.schema()) {
        schema::drop_empty_lists(found, &mut draft.value);
    }
}

fn undecodable(kind: &Kind, err: &dyn Display) -> ApiError {
    ApiError::bad_request(format!(
        "{} in version {:?} cannot be handled as a {}: {err}",
        kind.kind, kind.version, kind.kind
    ))
}
