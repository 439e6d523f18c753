//! A pod's claims, and the volumes that use them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use kube_apimachinery::json::{edit_list, object_member, to_go_string};
use kube_apimachinery::quantity::Quantity;
use serde_json::{Value, json};
use statefulset_client::error::Error as ApiError;
use statefulset_controller_util::controller_ref_manager::Membership;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{ClaimTemplate, StatefulSet};

use super::claim_sizes::{ClaimSizes, raise_request};
use super::identity::{Ordinal, membership, persistent_volume_claim_name};

#[cfg(test)]
mod tests;

/// The largest number of volumes that are searched one by one.
const FEW: usize = 8;

/// A claim before its creation.
#[derive(Clone, Debug)]
pub struct NewClaim<'a> {
    /// Its name.
    pub name: String,
    /// The size that the set wants, if it asks for one: counts if it is larger than the template's.
    pub(crate) size: Option<&'a Quantity>,
    set: &'a StatefulSet,
    template: &'a ClaimTemplate,
}

impl<'a> NewClaim<'a> {
    /// Returns the claim with the size that the set wants for this template.
    #[must_use]
    pub(crate) fn sized(mut self, sizes: Option<&'a ClaimSizes>) -> Self {
        self.size = sizes.and_then(|sizes| sizes.get(&self.template.name));
        self
    }

    /// Returns the object to POST, with the template's unknown fields.
    ///
    /// # Errors
    ///
    /// The template can't be encoded as JSON.
    pub fn to_value(&self) -> Result<Value, ApiError> {
        let template = self.template.to_value();
        let mut json = template.map_err(|error| {
            let name = &self.template.name;
            ApiError::InvalidRequest(format!("cannot read claim template {name}: {error}"))
        })?;
        let metadata = object_member(&mut json, "metadata");
        metadata["name"] = Value::from(self.name.as_str());
        metadata["namespace"] = Value::from(self.set.namespace());
        let selector_labels = self.set.spec.selector.match_labels();
        if !selector_labels.is_empty() {
            let labels = object_member(metadata, "labels");
            for (key, value) in selector_labels {
                labels[key] = Value::from(value.as_str());
            }
        }
        if let Some(size) = self.size {
            raise_request(&mut json, size);
        }
        if let Value::Object(claim) = &mut json {
            for (member, value) in [("apiVersion", "v1"), ("kind", "PersistentVolumeClaim")] {
                claim.entry(member).or_insert_with(|| Value::from(value));
            }
        }
        Ok(json)
    }

    /// Returns the body to POST.
    ///
    /// # Errors
    ///
    /// The template can't be encoded as JSON.
    pub fn body(&self) -> Result<String, ApiError> {
        Ok(to_go_string(&self.to_value()?))
    }
}

/// Returns the claims of the set's pod with this ordinal, in the order of their templates.
///
/// Upstream: `getPersistentVolumeClaims`.
pub fn persistent_volume_claims(
    set: &StatefulSet,
    ordinal: Ordinal,
) -> impl Iterator<Item = NewClaim<'_>> {
    let templates = set.spec.claim_templates.iter();
    templates.map(move |template| NewClaim {
        name: persistent_volume_claim_name(set, &template.name, ordinal),
        size: None,
        set,
        template,
    })
}

/// Returns the name of the claim from a template for an ordinal. The volume of its pod, if that exists,
/// normally has it already.
pub(crate) fn claim_name<'a>(
    set: &StatefulSet,
    template: &ClaimTemplate,
    ordinal: Ordinal,
    existing: Option<&'a Pod>,
) -> Cow<'a, str> {
    let pod = existing
        .filter(|pod| pod.claim_volumes.len() <= FEW && membership(set, pod) == Membership::Member);
    let mounted = pod.and_then(|pod| {
        let mut claims = pod.claim_volumes.iter().map(|volume| &*volume.claim_name);
        claims.find(|claim| is_claim_of(pod, template, claim))
    });
    let built = || persistent_volume_claim_name(set, &template.name, ordinal);
    mounted.map_or_else(|| built().into(), Cow::Borrowed)
}

/// True for the name of the claim from a template for a pod of its set.
fn is_claim_of(pod: &Pod, template: &ClaimTemplate, claim: &str) -> bool {
    let rest = claim.strip_prefix(&*template.name);
    rest.and_then(|rest| rest.strip_prefix('-')) == Some(&*pod.name)
}

/// True if a pod has, for every claim template, a volume of that name with the pod's claim. Ignores
/// other volumes.
///
/// Upstream: `storageMatches`.
pub fn storage_matches(set: &StatefulSet, pod: &Pod) -> bool {
    let is_right = |template: &ClaimTemplate, claim: Option<&str>| {
        claim.is_some_and(|claim| is_claim_of(pod, template, claim))
    };
    let mut templates = set.spec.claim_templates.iter();
    let volumes = pod.claim_volumes.iter();
    let volumes = volumes.map(|volume| (&*volume.name, &*volume.claim_name));
    // Of volumes with the same name the last one counts.
    if pod.claim_volumes.len() <= FEW {
        return templates.all(|template| {
            let found = volumes.clone().rfind(|(name, _)| **name == *template.name);
            is_right(template, found.map(|(_, claim)| claim))
        });
    }
    let volumes: BTreeMap<&str, &str> = volumes.collect();
    templates.all(|template| is_right(template, volumes.get(&*template.name).copied()))
}

/// Replaces the volumes in a pod's JSON: one per claim template first, then those with other names.
///
/// Upstream: `updateStorage`.
pub(crate) fn update_storage(set: &StatefulSet, ordinal: Ordinal, pod: &mut Value) {
    let templates = set.spec.claim_templates.iter();
    let names: BTreeSet<&str> = templates.map(|template| &*template.name).collect();
    let is_replaced = |name: &Value| name.as_str().is_some_and(|name| names.contains(name));
    let claim_volumes = persistent_volume_claims(set, ordinal).map(|claim| {
        json!({"name": claim.template.name, "persistentVolumeClaim": {"claimName": claim.name}})
    });
    edit_list(object_member(pod, "spec"), "volumes", |volumes| {
        volumes.retain(|volume| !is_replaced(&volume["name"]));
        volumes.splice(..0, claim_volumes);
    });
}
