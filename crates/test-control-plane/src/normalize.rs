//! What decoding into the reference's types and encoding again does to an object.

use kube_apimachinery::schema::{self, UnknownMembers};
use kube_apimachinery::time;
use serde_json::Value;

use crate::config::UnknownFields;
use crate::kinds::Kind;
use crate::object::Draft;
use crate::server::ApiServer;
use crate::status::{ApiError, ApiResult};

/// The parts of the kinds whose types the schema knows: the JSON pointer, the type
/// and the path.
pub(crate) fn typed_parts(kind: &Kind) -> &'static [(&'static str, &'static str, &'static str)] {
    match kind.storage {
        "statefulsets" => &[("", "StatefulSet", "")],
        "persistentvolumeclaims" => &[("", "PersistentVolumeClaim", "")],
        "pods" => &[
            ("/metadata", "ObjectMeta", "metadata"),
            ("/spec", "PodSpec", "spec"),
        ],
        _ => &[("/metadata", "ObjectMeta", "metadata")],
    }
}

impl ApiServer {
    /// Brings the typed parts of an object into their canonical form.
    ///
    /// # Errors
    ///
    /// 400 for a value of the wrong type, and for unknown members where they are not allowed.
    pub(crate) fn normalize(&self, kind: &Kind, draft: &mut Draft) -> ApiResult<()> {
        let unknown = match self.config().unknown_fields {
            UnknownFields::Keep => UnknownMembers::Keep,
            UnknownFields::Prune => UnknownMembers::Drop,
        };
        for (pointer, type_name, at) in typed_parts(kind) {
            let Some(part) = draft.value.pointer_mut(pointer).filter(|p| p.is_object()) else {
                continue;
            };
            let normal = schema::normalize(type_name, part, unknown, at).map_err(|err| {
                ApiError::bad_request(format!(
                    "{} in version {:?} cannot be handled as a {}: {err}",
                    kind.kind, kind.version, kind.kind
                ))
            })?;
            *part = normal;
        }
        if kind.storage == "leases" {
            check_micro_times(kind, draft)?;
        }
        strip_nulls(kind, &mut draft.value);
        Ok(())
    }
}

/// The times of leases have exactly six fraction digits; the reference refuses others.
fn check_micro_times(kind: &Kind, draft: &Draft) -> ApiResult<()> {
    for pointer in ["/spec/acquireTime", "/spec/renewTime"] {
        let Some(text) = draft.text(pointer) else {
            continue;
        };
        let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if digits != 6 || time::parse(text).is_err() {
            return Err(ApiError::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: parsing time {text:?} as \
                 \"2006-01-02T15:04:05.000000Z07:00\": cannot parse it",
                kind.kind, kind.version, kind.kind
            )));
        }
    }
    Ok(())
}

/// Removes null members at the top of `spec` and `status`, which Go's encoder leaves out.
fn strip_nulls(kind: &Kind, value: &mut Value) {
    if kind.storage == "events" {
        return;
    }
    for member in ["spec", "status"] {
        if let Some(map) = value.get_mut(member).and_then(Value::as_object_mut) {
            map.retain(|_, value| !value.is_null());
        }
    }
}
