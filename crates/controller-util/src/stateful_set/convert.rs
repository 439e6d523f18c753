//! Conversion from k8s-openapi's types, with Go's encoding.

use k8s_openapi::api::apps::v1 as apps;
use kube_apimachinery::schema::{UnknownMembers, normalize};
use serde_json::Value;
use statefulset_client::cache::indexer::CachedObject;

use super::StatefulSet;

/// Reason why a typed set can't be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// A field of the template has a value outside its Go type.
    #[error("{0}")]
    Normalize(#[from] kube_apimachinery::schema::DecodeError),
    /// The set can't be encoded to, or decoded from, JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

impl TryFrom<&apps::StatefulSet> for StatefulSet {
    type Error = ConvertError;

    /// Encodes the templates with the rules of the Go types, so that revision data and names match
    /// upstream.
    #[expect(clippy::indexing_slicing, reason = "a typed set encodes as an object")]
    fn try_from(set: &apps::StatefulSet) -> Result<Self, ConvertError> {
        let mut json = serde_json::to_value(set)?;
        let spec = &mut json["spec"];
        if !spec.is_object() {
            *spec = Value::Object(serde_json::Map::new());
        }
        let template = spec.get("template").cloned().unwrap_or_default();
        spec["template"] = normalize(
            "PodTemplateSpec",
            &template,
            UnknownMembers::Keep,
            "spec.template",
        )?;
        for claim in spec
            .get_mut("volumeClaimTemplates")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            normalize_claim(claim)?;
        }
        Ok(Self::decode(&json.to_string())?)
    }
}

fn normalize_claim(claim: &mut Value) -> Result<(), ConvertError> {
    for (member, type_name) in [
        ("metadata", "ObjectMeta"),
        ("spec", "PersistentVolumeClaimSpec"),
    ] {
        let value = claim.get(member).cloned().unwrap_or_default();
        claim[member] = normalize(
            type_name,
            &value,
            UnknownMembers::Keep,
            "spec.volumeClaimTemplates",
        )?;
    }
    if claim.get("status").is_none() {
        claim["status"] = Value::Object(serde_json::Map::new());
    }
    Ok(())
}
