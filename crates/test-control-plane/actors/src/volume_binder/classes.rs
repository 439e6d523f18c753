//! Storage classes: configured ones and those stored in the API server.

use std::collections::BTreeMap;

use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::object::{Key, MetadataRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::ActorClient;
use crate::delay::Delay;
use crate::matcher::Pattern;

/// Provisioner of classes without dynamic provisioning.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// Provisioner of the binder's volumes.
pub(super) const PROVISIONER: &str = "volume-binder.test-control-plane";

/// Time of a claim's binding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindingMode {
    /// Immediately.
    #[default]
    Immediate,
    /// After a pod that uses the claim is assigned to a node.
    WaitForFirstConsumer,
}

/// Fate of a volume after its claim is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReclaimPolicy {
    /// The volume is deleted.
    #[default]
    Delete,
    /// The volume stays in the phase Released.
    Retain,
}

/// A storage class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct VolumeClass {
    /// Time of binding.
    pub binding: BindingMode,
    /// Fate of volumes after their claims are deleted.
    pub reclaim: ReclaimPolicy,
    /// Provisions volumes for claims that no existing volume satisfies.
    pub provisions: bool,
    /// Ties a volume to the node for which it was provisioned.
    pub local: bool,
}

impl Default for VolumeClass {
    fn default() -> Self {
        Self {
            binding: BindingMode::Immediate,
            reclaim: ReclaimPolicy::Delete,
            provisions: true,
            local: false,
        }
    }
}

/// Provisioning settings for some claims. An unset name matches every claim; an unset delay keeps
/// the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ClaimRule {
    /// Namespace of the claims.
    pub namespace: Option<Pattern>,
    /// Name of the claims.
    pub name: Option<Pattern>,
    /// Duration of provisioning.
    pub provision_delay: Option<Delay>,
    /// Number of provisioning attempts that fail.
    pub failures: u32,
}

impl ClaimRule {
    fn matches(&self, key: &Key) -> bool {
        let fits = |pattern: &Option<Pattern>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| pattern.matches(text))
        };
        fits(&self.namespace, &key.namespace) && fits(&self.name, &key.name)
    }
}

/// Settings of the volume binder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct VolumeBinderConfig {
    /// Duration of provisioning.
    pub provision_delay: Delay,
    /// Class of claims without a class or with an unknown one.
    pub default_class: VolumeClass,
    /// Classes by name. A class stored in the API server overrides one here.
    pub classes: BTreeMap<String, VolumeClass>,
    /// Rules for some claims. The first match applies.
    pub claims: Vec<ClaimRule>,
}

impl VolumeBinderConfig {
    /// Returns the class of a claim.
    pub(crate) fn class(&self, client: &ActorClient, claim: &Value) -> VolumeClass {
        let name = claim.pointer("/spec/storageClassName");
        let Some(name) = name.and_then(Value::as_str) else {
            return self.default_class.clone();
        };
        if let Some(stored) = stored_class(client, name) {
            return stored;
        }
        if name.is_empty() {
            // A claim with an empty class binds only to volumes without a class.
            return VolumeClass {
                provisions: false,
                ..VolumeClass::default()
            };
        }
        let known = self.classes.get(name);
        known.unwrap_or(&self.default_class).clone()
    }

    /// Returns the provisioning delay of a claim and the number of failures.
    pub(super) fn provisioning(&self, key: &Key, claim: &Value) -> (Delay, u32) {
        let rule = self.claims.iter().find(|rule| rule.matches(key));
        let delay = rule.and_then(|rule| rule.provision_delay);
        let failures = rule.map_or(0, |rule| rule.failures);
        let metadata = MetadataRef(claim.get("metadata"));
        let note = |name: &str| metadata.annotation(&format!("{PROVISIONER}/{name}"));
        let noted_delay = note("provision-delay").and_then(|text| text.parse().ok());
        let noted_failures = note("failures").and_then(|text| text.parse().ok());
        (
            noted_delay.or(delay).unwrap_or(self.provision_delay),
            noted_failures.unwrap_or(failures),
        )
    }
}

/// Returns a class from the API server, if it serves classes.
fn stored_class(client: &ActorClient, name: &str) -> Option<VolumeClass> {
    let kind = kinds::by_resource("storage.k8s.io", "v1", "storageclasses")?;
    let class = client.get(&Key::new(kind, "", name))?.value();
    let text = |member: &str| class.get(member).and_then(Value::as_str);
    Some(VolumeClass {
        binding: match text("volumeBindingMode") {
            Some("WaitForFirstConsumer") => BindingMode::WaitForFirstConsumer,
            _ => BindingMode::Immediate,
        },
        reclaim: match text("reclaimPolicy") {
            Some("Retain") => ReclaimPolicy::Retain,
            _ => ReclaimPolicy::Delete,
        },
        provisions: text("provisioner") != Some(NO_PROVISIONER),
        local: false,
    })
}
