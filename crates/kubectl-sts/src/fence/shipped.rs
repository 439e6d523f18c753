//! The comparison of the stored policies with the shipped ones.

use serde_json::Value;
use statefulset_client::cache::indexer::CachedObject as _;
use statefulset_fence::{FencePolicies, FenceSettings, Gap, PartKind, StoredPart, gap};

/// The stored policies and bindings, by kind.
pub(crate) type Parts = Vec<(PartKind, Value)>;

/// Returns the settings of the stored policies; the defaults if they don't look like shipped ones.
pub(crate) fn settings(parts: &Parts) -> Option<FenceSettings> {
    let policies = parts.iter().filter(|(kind, _)| *kind == PartKind::Policy);
    let policies: Vec<&Value> = policies.map(|(_, object)| object).collect();
    let named = |name: &str| {
        let is_named = |it: &&&Value| it.pointer("/metadata/name").is_some_and(|it| it == name);
        policies.iter().find(is_named).copied()
    };
    let fence = named(statefulset_fence::names::FENCE)?;
    let mirror = named(statefulset_fence::names::MIRROR)?;
    FenceSettings::of_stored(fence, mirror)
}

/// Returns the first difference from the shipped policies.
///
/// # Errors
///
/// An object can't be decoded, or the policies name the built-in controller as this program.
pub(crate) fn difference(settings: &FenceSettings, parts: &Parts) -> anyhow::Result<Option<Gap>> {
    let policies = FencePolicies::new(settings)?;
    let mut stored = Vec::new();
    for (kind, object) in parts {
        stored.push((*kind, StoredPart::decode(&object.to_string())?));
    }
    let found = |kind: PartKind, name: &str| {
        let mut stored = stored.iter();
        let found = stored.find(|(of, part)| *of == kind && *part.name == *name);
        found.map(|(_, part)| part)
    };
    Ok(gap(&policies, found))
}
