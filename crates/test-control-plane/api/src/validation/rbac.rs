//! Rules of role bindings.

use serde_json::json;

use super::place::{Errors, Place};
use crate::status::FieldError;

/// Rejects another role.
pub(super) fn role_ref_update(role: &Place<'_>, errors: &mut Errors) {
    if role.is_changed() {
        let [group, kind, name] = ["apiGroup", "kind", "name"].map(|member| role.text_of(member));
        let printed = json!({"APIGroup": group, "Kind": kind, "Name": name});
        let detail = "cannot change roleRef";
        errors.push(FieldError::invalid(role.path(), &printed, detail));
    }
}
