//! The stored objects and the log of their changes.

pub use kube_apimachinery::labels::Labels;
pub use kube_test_control_plane_api::object::{
    AsIs, Draft, Key, MetadataRef, Object, StoreAsIsError,
};
pub use kube_test_control_plane_store::store::{
    Change, Collection, Compacted, Expect, LogEntry, Mismatch, ObjectPage, Store, StoreReader,
};
