//! Decoding of request bodies, under the server's policy for unknown fields.

use std::sync::Arc;

use kube_test_control_plane_api::kinds::Kind;
use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::options::FieldValidation;
use kube_test_control_plane_api::patch::{Patch, Patched};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::strict::MemberCheck;
use kube_test_control_plane_api::{events, normalize};
use serde_json::Value;

use super::handled_form;
use crate::route::ResourceRequest;
use crate::server::ApiServer;

impl ApiServer {
    /// Normalizes an object.
    ///
    /// # Errors
    ///
    /// 400 for a value of the wrong type.
    pub(crate) fn normalize(&self, kind: &Kind, draft: &mut Draft) -> ApiResult<()> {
        normalize::normalize(kind, draft, self.emulated_version(), self.unknown_fields())
    }

    /// Returns the check for unknown and repeated fields of a body.
    pub(crate) fn member_check<'a>(
        &self,
        kind: &'a Arc<Kind>,
        validation: FieldValidation,
    ) -> MemberCheck<'a> {
        MemberCheck {
            kind,
            validation,
            version: self.emulated_version(),
            unknown_fields: self.unknown_fields(),
        }
    }

    /// Checks a patch for repeated and unknown fields.
    ///
    /// # Errors
    ///
    /// 422 with strict field validation.
    pub(crate) fn check_patch(
        &self,
        request: &ResourceRequest,
        patch: &Patch,
        text: &[u8],
        validation: FieldValidation,
    ) -> ApiResult<Vec<String>> {
        let check = self.member_check(&request.kind, validation);
        check.patch(patch, text, || self.patched(request, patch))
    }

    /// Converts the decoding error of a PUT to that of a patch.
    pub(crate) fn undecodable(
        &self,
        request: &ResourceRequest,
        patch: &Patch,
        error: ApiError,
    ) -> ApiError {
        let patched = self.patched(request, patch);
        patch.undecodable(&request.kind, error, patched.as_ref().map(|(_, new)| new))
    }

    /// Returns the object before the patch, and the result. Returns `None` if the object is missing
    /// or the patch does not apply; the update itself reports these.
    fn patched(&self, request: &ResourceRequest, patch: &Patch) -> Option<(Value, Patched)> {
        let current = self.store().get(&Self::key(request))?;
        let mut old = handled_form(&request.kind, &current).ok()?;
        events::to_served(&request.kind, &mut old.value);
        let patched = patch.apply(&request.kind, &old).ok()?;
        Some((old.to_value(), patched))
    }
}
