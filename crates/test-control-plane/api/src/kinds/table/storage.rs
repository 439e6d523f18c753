//! `storage.k8s.io/v1`, only storage classes.

use super::cluster;
use crate::kinds::Kind;

pub(super) const KINDS: &[Kind] = &[Kind {
    short_names: &["sc"],
    ..cluster(
        "storage.k8s.io",
        "StorageClass",
        "storageclasses",
        "storageclass",
    )
}];
