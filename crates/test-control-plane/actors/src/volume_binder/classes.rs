//! Storage classes from the configuration and the API server.

use std::collections::BTreeMap;

use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::object::{Key, MetadataRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::ActorClient;
use crate::matcher::Pattern;
use kube_test_control_plane_api::setters;
use kube_test_control_plane_server::faults::Delay;

/// The provisioner name of classes with manually created volumes.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// The volume binder's provisioner name.
pub(super) const PROVISIONER: &str = "volume-binder.test-control-plane";

/// Binding time of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum BindingMode {
    /// Immediately.
    #[default]
    Immediate,
    /// After a pod that uses the claim was assigned to a node.
    WaitForFirstConsumer,
}

/// Fate of a volume after its claim is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ReclaimPolicy {
    /// The volume is deleted.
    #[default]
    Delete,
    /// The volume is released and stays.
    Retain,
}

/// A storage class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct VolumeClass {
    /// Binding time of claims.
    pub binding: BindingMode,
    /// Fate of volumes after their claim is deleted.
    pub reclaim: ReclaimPolicy,
    /// True to provision volumes for claims that no existing volume matches.
    pub provisions: bool,
    /// True to restrict each volume to the node it was provisioned for.
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

impl VolumeClass {
    setters! {
        /// Sets the binding time of claims.
        binding: BindingMode,
        /// Sets the fate of volumes after their claim is deleted.
        reclaim: ReclaimPolicy,
        /// Provisions volumes for claims that no existing volume matches.
        provisions: bool,
        /// Restricts each volume to the node it was provisioned for.
        local: bool,
    }
}

/// Provisioning settings for matching claims. An unset filter matches every claim; an unset setting
/// keeps the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ClaimRule {
    /// The claims' namespace.
    pub namespace: Option<Pattern>,
    /// The claims' name.
    pub name: Option<Pattern>,
    /// Time to provision the volume.
    pub provision_delay: Option<Delay>,
    /// Number of failing attempts to provision the volume.
    pub failures: u32,
}

impl ClaimRule {
    setters! {
        /// Sets the claims' namespace.
        namespace: into Pattern,
        /// Sets the claims' name.
        name: into Pattern,
        /// Sets the time to provision the volume.
        provision_delay: into Delay,
        /// Sets the number of failing attempts to provision the volume.
        failures: u32,
    }

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
#[non_exhaustive]
pub struct VolumeBinderConfig {
    /// Time to provision a volume.
    pub provision_delay: Delay,
    /// Time to expand a volume.
    pub expansion_delay: Delay,
    /// The class of claims without a class or with an unknown one.
    pub default_class: VolumeClass,
    /// Classes by name. A stored class of the API server takes precedence.
    pub classes: BTreeMap<String, VolumeClass>,
    /// Rules for claims; the first match applies.
    pub claims: Vec<ClaimRule>,
}

impl VolumeBinderConfig {
    setters! {
        /// Sets the time to provision a volume.
        provision_delay: into Delay,
        /// Sets the time to expand a volume.
        expansion_delay: into Delay,
        /// Sets the class of claims without a class or with an unknown one.
        default_class: VolumeClass,
        /// Sets the classes by name.
        classes: pairs String => VolumeClass,
        /// Sets the rules for claims; the first match applies.
        claims: each ClaimRule,
    }

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
            // A claim with an explicit empty class only binds to volumes without one.
            return VolumeClass {
                provisions: false,
                ..VolumeClass::default()
            };
        }
        let known = self.classes.get(name);
        known.unwrap_or(&self.default_class).clone()
    }

    /// Returns the provisioning time of a claim's volume and its number of failing attempts.
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

/// Returns a class stored by the API server, if it serves classes.
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
