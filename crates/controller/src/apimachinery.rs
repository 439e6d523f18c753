//! Names of `kube-apimachinery` that embedders use.

/// Percentages.
pub mod int_or_string {
    pub use kube_apimachinery::int_or_string::{IntOrString, IntOrStringError};
}

/// JSON as Go reads it.
pub mod json {
    pub use kube_apimachinery::json::{Document, ParseError, RawObject};
}

/// Labels.
pub mod labels {
    pub use kube_apimachinery::labels::{LabelSet, Labels};
}

/// Namespaces with names.
pub mod object_key {
    pub use kube_apimachinery::object_key::{ObjectKey, ParseObjectKeyError};
}

/// Owners.
pub mod owner_reference {
    pub use kube_apimachinery::owner_reference::OwnerReference;
}

/// Conditions of pods.
pub mod pod {
    pub use kube_apimachinery::pod::{PodPhase, Readiness};
}

/// Protobuf.
pub mod protobuf {
    pub use kube_apimachinery::protobuf::WireError;
}

/// Quantities.
pub mod quantity {
    pub use kube_apimachinery::quantity::QuantityError;
}

/// The types' fields.
pub mod schema {
    pub use kube_apimachinery::schema::{DecodeError, Type, TypeName, Version};
}

/// Selectors.
pub mod selector {
    pub use kube_apimachinery::selector::{LabelSelector, Selector, SelectorError};
}

/// Strategic merge patches.
pub mod strategic_merge {
    pub use kube_apimachinery::strategic_merge::StrategicMergeError;
}
