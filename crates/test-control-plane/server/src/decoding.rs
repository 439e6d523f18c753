//! Decoding of what clients send, under the server's policy for unknown members.

use kube_test_control_plane_api::events;
use kube_test_control_plane_api::kinds::Kind;
use kube_test_control_plane_api::normalize;
use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::options::FieldValidation;
use kube_test_control_plane_api::patch::Patch;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::strict::{self, MemberCheck};
use serde_json::Value;

use crate::route::ResourceRequest;
use crate::server::ApiServer;

impl ApiServer {
    /// Checks the types of what a client sent, where defaults would hide wrong ones.
    ///
    /// # Errors
    ///
    /// 400 for a value of the wrong type.
    pub(crate) fn check_types(&self, kind: &Kind, draft: &mut Draft) -> ApiResult<()> {
        normalize::check_types(kind, draft, self.unknown_fields())
    }

    /// Brings an object into its canonical form.
    ///
    /// # Errors
    ///
    /// 400 for a value of the wrong type.
    pub(crate) fn normalize(&self, kind: &Kind, draft: &mut Draft) -> ApiResult<()> {
        normalize::normalize(kind, draft, self.unknown_fields())
    }

    /// The check of the members of a body.
    pub(crate) fn member_check(
        &self,
        kind: &'static Kind,
        validation: FieldValidation,
    ) -> MemberCheck {
        MemberCheck {
            kind,
            validation,
            unknown_fields: self.unknown_fields(),
        }
    }

    /// Looks for repeated and unknown members in a patch.
    ///
    /// # Errors
    ///
    /// 422 for a strict client.
    pub(crate) fn check_patch(
        &self,
        request: &ResourceRequest,
        patch: &Patch,
        text: &[u8],
        validation: FieldValidation,
    ) -> ApiResult<Vec<String>> {
        let check = self.member_check(request.kind, validation);
        check.patch(patch, text, || self.patched(request, patch))
    }

    /// The error of a patch whose result is no object of its kind, from the error of a PUT.
    pub(crate) fn undecodable(
        &self,
        request: &ResourceRequest,
        patch: &Patch,
        error: ApiError,
    ) -> ApiError {
        strict::undecodable(request.kind, patch, error, || self.patched(request, patch))
    }

    /// The object before and after the patch; none if it isn't there or the patch doesn't fit,
    /// which the update itself reports.
    fn patched(&self, request: &ResourceRequest, patch: &Patch) -> Option<(Value, Value)> {
        let current = self.store().get(&Self::key(request))?;
        let mut old = current.draft();
        events::to_served(request.kind, &mut old.value);
        let new = patch.apply(request.kind, &old).ok()?;
        Some((old.to_value(), new.to_value()))
    }
}
