//! Rules of volumes and their classes.

use serde_json::json;

use super::place::{Errors, Place};
use crate::status::FieldError;

/// Members of a volume's spec that aren't volume sources.
const NO_SOURCES: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

pub(super) fn storage_capacity(capacity: &Place<'_>, errors: &mut Errors) {
    if !capacity.member("storage").is_present() {
        let path = capacity.path();
        errors.push(FieldError::not_supported(
            path,
            capacity.value,
            &["storage"],
        ));
    }
}

pub(super) fn volume_type(spec: &Place<'_>, errors: &mut Errors) {
    let mut members = spec.value.as_object().into_iter().flatten();
    if members.all(|(member, _)| NO_SOURCES.contains(&member.as_str())) {
        errors.push(spec.required("must specify a volume type"));
    }
}

pub(super) fn parameter_names(parameters: &Place<'_>, errors: &mut Errors) {
    let map = parameters.value.as_object();
    if map.is_some_and(|map| map.contains_key("")) {
        let detail = "field can not be empty";
        errors.push(FieldError::invalid(parameters.path(), &json!(""), detail));
    }
}
