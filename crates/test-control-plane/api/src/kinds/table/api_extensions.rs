//! `apiextensions.k8s.io/v1`.

use super::cluster;
use crate::custom::DEFINITIONS;
use crate::kinds::{Kind, Subresource, Trait};

pub(super) const KINDS: &[Kind] = &[Kind {
    short_names: &["crd", "crds"],
    categories: &["api-extensions"],
    subresources: &[Subresource::Status],
    traits: &[Trait::Generation, Trait::NoUnconditionalUpdate],
    ..cluster(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        DEFINITIONS,
        "customresourcedefinition",
    )
}];
