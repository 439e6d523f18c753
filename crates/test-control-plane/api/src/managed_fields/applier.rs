//! Server-side apply.
//!
//! Upstream: `FieldManager.Apply` and the managers that it goes through.

use serde_json::Value;

use super::conflict::Conflicts;
use super::managers::{Managed, ManagerId, Operation};
use super::reset_fields::{Filter, without_system_fields};
use super::tracker::managed_fields;
use super::tracker::{update, versioned};
use super::typed::{self, Strictness, TypeRef};
use super::updater::{MergeResult, Updater};
use super::{Writer, last_applied};
use crate::kinds::{Kind, zero};
use crate::status::{ApiError, ApiResult};

/// The manager of all existing fields, if an object had no managers before its first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The result of an apply.
#[derive(Debug)]
pub struct Applied {
    /// The object, with its previous managers.
    pub object: Value,
    /// The new managers; null if there are none.
    pub managed_fields: Value,
}

/// Applies a configuration to an object, or creates one.
///
/// # Errors
///
/// 400 for a configuration of another kind or with managers, 500 for one that doesn't match the
/// kind's type, 409 if other managers own its changes and `force` is not set.
pub fn apply(
    writer: &Writer<'_>,
    live: Option<&Value>,
    config: &Value,
    force: bool,
    strictness: Strictness,
) -> ApiResult<Applied> {
    check_kind(writer.kind, config)?;
    let managed = Managed::decode(managed_fields(live))
        .map_err(|err| ApiError::internal(format!("failed to decode managed fields: {err}")))?;
    let empty = zero(writer.kind);
    let live = live.unwrap_or(empty);
    let managed = if managed.fields.is_empty() {
        update(writer, empty, live, managed, BEFORE_FIRST_APPLY)
    } else {
        managed
    };
    if managed_fields(Some(config)).is_some_and(Value::is_array) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let of = TypeRef::in_version(writer.kind, strictness.version());
    typed::validate(of, config, strictness).map_err(|err| {
        let object = described(config);
        ApiError::internal(format!(
            "failed to create typed patch object ({object}): {err}"
        ))
    })?;
    let merged =
        merge(writer, live, config, managed, force).map_err(|conflicts| conflicts.error())?;
    let mut object = merged.object.unwrap_or_else(|| live.clone());
    if writer.manager == last_applied::MANAGER {
        last_applied::renew(&mut object, config);
    }
    Ok(Applied {
        object,
        managed_fields: merged.managed.encode(),
    })
}

/// Merges the configuration. kubectl may take over fields that it applied on the client side.
fn merge(
    writer: &Writer<'_>,
    live: &Value,
    config: &Value,
    managed: Managed,
    force: bool,
) -> Result<MergeResult, Conflicts> {
    let conflicts = match merge_once(writer, live, config, managed.clone(), force) {
        Err(conflicts) if writer.manager == last_applied::MANAGER => conflicts,
        merged => return merged,
    };
    let Some(known) = last_applied::fields(writer.kind, live) else {
        return Err(conflicts);
    };
    if !conflicts.fields().difference(&known).is_empty() {
        return Err(conflicts.except(&known));
    }
    merge_once(writer, live, config, managed, true)
}

fn merge_once(
    writer: &Writer<'_>,
    live: &Value,
    config: &Value,
    managed: Managed,
    force: bool,
) -> Result<MergeResult, Conflicts> {
    let api_version = writer.kind.api_version();
    let filter = Filter::of(writer.kind, writer.subresource);
    let updater = Updater {
        api_version: &api_version,
        filter: &filter,
    };
    let id = ManagerId::new(Operation::Apply, writer.manager, "", writer.subresource);
    let live = versioned(writer, live);
    let mut merged = updater.apply(&live, config, managed, &id, force)?;
    let managed = &mut merged.managed;
    if let Some(fields) = managed.fields.get_mut(&id) {
        fields.set = without_system_fields(&fields.set);
        if fields.set.is_empty() {
            managed.fields.remove(&id);
        }
    }
    if merged.object.is_some() {
        managed.times.insert(id, writer.now.to_owned());
    }
    Ok(merged)
}

fn check_kind(kind: &Kind, config: &Value) -> ApiResult<()> {
    let found = type_of(config);
    let wanted = format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind);
    if found == wanted {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "invalid object type: {found}"
    )))
}

/// Returns the type of an object for messages: `apps/v1, Kind=StatefulSet`.
fn type_of(object: &Value) -> String {
    let text = |member: &str| {
        object
            .get(member)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    match api_version.matches('/').count() {
        0 => format!("/{api_version}, Kind={kind}"),
        1 => format!("{api_version}, Kind={kind}"),
        _ => "/, Kind=".to_owned(),
    }
}

/// Returns the text of an object for messages.
pub fn described(object: &Value) -> String {
    let text = |pointer: &str| {
        let value = object.pointer(pointer).and_then(Value::as_str);
        value.unwrap_or_default()
    };
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    format!("{namespace}/{name}; {}", type_of(object))
}
