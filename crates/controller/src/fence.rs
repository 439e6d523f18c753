//! Names of `statefulset-fence` that embedders use.

pub use statefulset_fence::{
    FencePolicies, FenceSettings, NamespaceSelector, ParseNamespaceSelectorError, SameUser, names,
};
