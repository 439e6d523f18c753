//! Storage classes: what the binder is told of them, and those that the API server stores.

use std::collections::BTreeMap;

use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::object::{Key, MetadataRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::ActorClient;
use crate::delay::Delay;
use crate::matcher::Pattern;

/// The provisioner of classes whose volumes are made by hand.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// The provisioner of volumes that the binder makes.
pub(super) const PROVISIONER: &str = "volume-binder.test-control-plane";

/// When a claim is bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindingMode {
    /// At once.
    #[default]
    Immediate,
    /// Once a pod that uses it has been assigned to a node.
    WaitForFirstConsumer,
}

/// What becomes of a volume whose claim is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReclaimPolicy {
    /// It goes, too.
    #[default]
    Delete,
    /// It stays, released.
    Retain,
}

/// A storage class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct VolumeClass {
    /// When claims are bound.
    pub binding: BindingMode,
    /// What becomes of volumes whose claim is gone.
    pub reclaim: ReclaimPolicy,
    /// Whether volumes are made for claims that none of the existing volumes fits.
    pub provisions: bool,
    /// Whether a volume can be used only on the node for which it was made.
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

/// How some claims fare. What isn't set matches every claim, or leaves it as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ClaimRule {
    /// The claims' namespace.
    pub namespace: Option<Pattern>,
    /// The claims' name.
    pub name: Option<Pattern>,
    /// How long it takes to make their volume.
    pub provision_delay: Option<Delay>,
    /// How many tries to make their volume fail.
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

/// How the volume binder behaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct VolumeBinderConfig {
    /// How long it takes to make a volume.
    pub provision_delay: Delay,
    /// What claims get whose class is not described anywhere, and those without a class.
    pub default_class: VolumeClass,
    /// Classes by name. A class that the API server stores wins over one here.
    pub classes: BTreeMap<String, VolumeClass>,
    /// How some claims fare; the first rule that matches counts.
    pub claims: Vec<ClaimRule>,
}

impl VolumeBinderConfig {
    /// The class of a claim.
    pub(crate) fn class(&self, client: &ActorClient, claim: &Value) -> VolumeClass {
        let name = claim.pointer("/spec/storageClassName");
        let Some(name) = name.and_then(Value::as_str) else {
            return self.default_class.clone();
        };
        if let Some(stored) = stored_class(client, name) {
            return stored;
        }
        if name.is_empty() {
            // Claims that say that they want no class are bound to volumes without one only.
            return VolumeClass {
                provisions: false,
                ..VolumeClass::default()
            };
        }
        let known = self.classes.get(name);
        known.unwrap_or(&self.default_class).clone()
    }

    /// How long it takes to make the volume of a claim, and how many tries fail.
    pub(super) fn fate(&self, key: &Key, claim: &Value) -> (Delay, u32) {
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

/// A class as the API server stores it, if it knows of classes.
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
