//! The rules of syncs besides the objects.

use statefulset_client::feature_gates::FeatureGates;

use crate::defaults::OptInDefaults;

/// The rules of syncs besides the objects. From feature gates alone, sets have no default choices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyncRules {
    /// The feature gates.
    pub gates: FeatureGates,
    /// Choices of sets that make none.
    pub opt_in_defaults: OptInDefaults,
}

impl SyncRules {
    /// Sets the feature gates.
    #[must_use]
    pub fn gates(mut self, gates: FeatureGates) -> Self {
        self.gates = gates;
        self
    }

    /// Sets the choices of sets that make none.
    #[must_use]
    pub fn opt_in_defaults(mut self, opt_in_defaults: OptInDefaults) -> Self {
        self.opt_in_defaults = opt_in_defaults;
        self
    }
}

impl From<FeatureGates> for SyncRules {
    fn from(gates: FeatureGates) -> Self {
        let opt_in_defaults = OptInDefaults::default();
        Self {
            gates,
            opt_in_defaults,
        }
    }
}
