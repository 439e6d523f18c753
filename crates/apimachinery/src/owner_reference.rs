//! Owner references, and the controlling one among them.

use serde::{Deserialize, Serialize};

/// A reference from an object to one of its owners.
///
/// Serializes its fields in Go's order, and omits unset ones.
///
/// Upstream: `metav1.OwnerReference`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// API version of the owner, such as `apps/v1`.
    pub api_version: Box<str>,
    /// Kind of the owner.
    pub kind: Box<str>,
    /// Name of the owner, in the object's own namespace.
    pub name: Box<str>,
    /// UID of the owner; the garbage collector matches by it.
    pub uid: Box<str>,
    /// True if this owner is the managing controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// True if foreground deletion of the owner waits for this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl OwnerReference {
    /// Creates a controlling reference that blocks the owner's foreground deletion.
    ///
    /// Upstream: `metav1.NewControllerRef`.
    pub fn new_controller(api_version: &str, kind: &str, name: &str, uid: &str) -> Self {
        Self {
            api_version: api_version.into(),
            kind: kind.into(),
            name: name.into(),
            uid: uid.into(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }

    /// Returns true if this reference is to the managing controller.
    pub fn is_controller(&self) -> bool {
        self.controller == Some(true)
    }
}

/// Returns the first controlling reference, if any.
///
/// Upstream: `metav1.GetControllerOf`.
pub fn controller_of(references: &[OwnerReference]) -> Option<&OwnerReference> {
    references
        .iter()
        .find(|reference| reference.is_controller())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_controlling_reference_wins() {
        let plain = OwnerReference {
            controller: Some(false),
            ..OwnerReference::default()
        };
        let first = OwnerReference::new_controller("apps/v1", "StatefulSet", "web", "1");
        let second = OwnerReference::new_controller("apps/v1", "StatefulSet", "db", "2");
        let references = [plain.clone(), first.clone(), second];
        assert_eq!(controller_of(&references), Some(&first));
        assert_eq!(controller_of(&[plain]), None);
    }

    #[test]
    fn members_serialize_in_gos_order() {
        let reference = OwnerReference::new_controller("apps/v1", "StatefulSet", "web", "u");
        assert_eq!(
            serde_json::to_string(&reference).unwrap(),
            r#"{"apiVersion":"apps/v1","kind":"StatefulSet","name":"web","uid":"u","controller":true,"blockOwnerDeletion":true}"#
        );
    }
}
