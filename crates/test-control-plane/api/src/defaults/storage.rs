//! Defaults of storage classes.

use serde_json::Value;

use super::default_text;
use crate::object::MetadataRef;

/// The annotations that mark the default class.
const IS_DEFAULT: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

/// Upstream: `SetDefaults_StorageClass`
pub(super) fn storage_class(value: &mut Value) {
    if let Some(class) = value.as_object_mut() {
        default_text(class, "reclaimPolicy", "Delete");
        default_text(class, "volumeBindingMode", "Immediate");
    }
}

/// Returns true if claims without a class use this one.
///
/// Upstream: `IsDefaultAnnotationText`
pub fn is_default(class: &Value) -> bool {
    let metadata = MetadataRef(class.get("metadata"));
    IS_DEFAULT
        .iter()
        .any(|mark| metadata.annotation(mark) == Some("true"))
}
