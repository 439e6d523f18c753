//! What decoding into the reference's types and encoding again does to an object.

use kube_apimachinery::schema::{self, Type, UnknownMembers};

use crate::config::UnknownFields;
use crate::defaults;
use crate::kinds::{Kind, Trait};
use crate::object::Draft;
use crate::server::ApiServer;
use crate::status::{ApiError, ApiResult};

/// The type of a kind's objects.
pub(crate) fn type_of(kind: &Kind) -> Option<&'static Type> {
    schema::type_of_kind(&kind.api_version(), kind.kind)
}

impl ApiServer {
    /// Checks the types of what a client sent, where defaults would hide wrong ones.
    ///
    /// # Errors
    ///
    /// 400 for a value of the wrong type.
    pub(crate) fn check_types(&self, kind: &Kind, draft: &mut Draft) -> ApiResult<()> {
        if defaults::hide_wrong_types(kind) {
            self.normalize(kind, draft)?;
        }
        Ok(())
    }

    /// Brings an object into its canonical form.
    ///
    /// # Errors
    ///
    /// 400 for a value of the wrong type, and for unknown members where they are not allowed.
    pub(crate) fn normalize(&self, kind: &Kind, draft: &mut Draft) -> ApiResult<()> {
        let unknown = match self.unknown_fields() {
            UnknownFields::Keep => UnknownMembers::Keep,
            UnknownFields::Prune => UnknownMembers::Drop,
        };
        let Some(found) = type_of(kind) else {
            return Ok(());
        };
        let sent = std::mem::take(&mut draft.value);
        let normal = schema::normalize_owned(found.name, sent, unknown, "").map_err(|err| {
            ApiError::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: {err}",
                kind.kind, kind.version, kind.kind
            ))
        })?;
        draft.value = normal;
        if kind.has(Trait::RawData)
            && let Some(map) = draft.value.as_object_mut()
        {
            // It is kept beside the value, as text.
            map.remove("data");
        }
        Ok(())
    }
}
