//! Merges that no manager owns.

use serde_json::Value;

use super::typed::{self, Strictness, TypeRef};
use crate::kinds::Kind;

/// Merges a configuration into an object, whose managers stay.
///
/// # Errors
///
/// The configuration doesn't fit the kind's type, or has atomic parts; the text is upstream's.
///
/// Upstream: `ApplyStructuredMergeDiff`
pub fn merge_unmanaged(
    kind: &Kind,
    live: &Value,
    config: &Value,
    strictness: Strictness,
) -> Result<Value, String> {
    let of = TypeRef::in_version(kind, strictness.version());
    typed::validate(of, config, strictness)
        .map_err(|err| format!("failed to convert patch object to typed object: {err}"))?;
    let atomics = typed::atomics(of, config);
    if !atomics.is_empty() {
        let atomics = atomics.join(", ");
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {atomics}"
        ));
    }
    Ok(typed::merge(of, live, config))
}
