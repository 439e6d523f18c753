//! Releases of Kubernetes with their feature gates.

use std::fmt;

use serde_json::Value;
use statefulset_client::feature_gates::{FeatureGates, KubeVersion};

/// The oldest minor version whose behaviour is known.
pub(crate) const OLDEST: u32 = 33;
/// The newest minor version whose behaviour is known.
pub(crate) const NEWEST: u32 = 37;
/// The minor version of which only announced changes are known.
pub(crate) const NEXT: u32 = 38;

/// A release of Kubernetes 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    pub(crate) minor: u32,
    /// The patch; the latest one if `None`.
    pub(crate) patch: Option<u32>,
}

impl Release {
    /// Parses a version such as `1.37` or `v1.34.1`.
    ///
    /// `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.strip_prefix('v').unwrap_or(text).split('.');
        if numbers.next()? != "1" {
            return None;
        }
        let minor = numbers.next()?.parse().ok()?;
        let patch = numbers.next().map(str::parse).transpose().ok()?;
        numbers.next().is_none().then_some(Self { minor, patch })
    }

    /// The release of a server, by its response to `/version`.
    pub(crate) fn of_server(version: &Value) -> Option<Self> {
        let minor = crate::server::minor(version)?;
        let shown = version.get("gitVersion").and_then(Value::as_str);
        let patch = shown.and_then(|shown| {
            let patch = shown.split('.').nth(2)?;
            let digits = patch.split(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse().ok()
        });
        Some(Self { minor, patch })
    }

    /// The latest patch of a minor version.
    pub(crate) fn latest(minor: u32) -> Self {
        let patch = None;
        Self { minor, patch }
    }

    /// The default gates of kube-controller-manager.
    pub(crate) fn gates(self) -> FeatureGates {
        let known = self.minor.clamp(OLDEST, NEWEST);
        // Unlike the emulation of 1.33 in a later release, 1.33 to 1.34.1 compare bytes, and 1.35.0
        // to 1.35.3 enabled maxUnavailable.
        let compares_bytes = self.minor < 34 || self.minor == 34 && self.is_before(2);
        let gates = FeatureGates::at(KubeVersion::v1(known));
        gates
            .stateful_set_semantic_revision_comparison(!compares_bytes)
            .max_unavailable_stateful_set(
                gates.max_unavailable_stateful_set || self.minor == 35 && self.is_before(4),
            )
            .preview_parallel_scale_down_first(self.minor >= NEXT)
            .stateful_set_recreate_strategy(self.minor >= NEXT)
    }

    fn is_before(self, patch: u32) -> bool {
        self.patch.is_some_and(|own| own < patch)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v1.{}", self.minor)?;
        match self.patch {
            Some(patch) => write!(f, ".{patch}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn releases_are_parsed_with_or_without_a_patch() {
        for (text, shown) in [
            ("1.37", "v1.37"),
            ("v1.34.1", "v1.34.1"),
            ("1.36.2", "v1.36.2"),
        ] {
            let release = Release::parse(text).map(|it| it.to_string());
            assert_eq!(release.as_deref(), Some(shown));
        }
        for bad in ["", "1", "2.0", "1.x", "1.36.2.1", "1.36-alpha"] {
            assert_eq!(Release::parse(bad), None, "{bad}");
        }
        let version = json!({"major": "1", "minor": "33+", "gitVersion": "v1.33.5-gke.100"});
        let server = Release::of_server(&version).map(|it| it.to_string());
        assert_eq!(server.as_deref(), Some("v1.33.5"));
    }

    #[test]
    fn gates_follow_the_patch() {
        let gates = |text| Release::parse(text).unwrap().gates();
        assert!(!gates("1.34.1").stateful_set_semantic_revision_comparison);
        assert!(gates("1.34.2").stateful_set_semantic_revision_comparison);
        assert!(gates("1.34").stateful_set_semantic_revision_comparison);
        assert!(gates("1.35.3").max_unavailable_stateful_set);
        assert!(!gates("1.35.4").max_unavailable_stateful_set);
        assert!(!gates("1.36").max_unavailable_stateful_set);
        assert!(gates("1.37").max_unavailable_stateful_set);
        assert!(!gates("1.37").stateful_set_recreate_strategy);
        assert!(gates("1.38").preview_parallel_scale_down_first);
        assert!(gates("1.38").stateful_set_recreate_strategy);
    }
}
