//! The emulated Kubernetes version.

use anyhow::{bail, ensure};
use statefulset_client::feature_gates::KubeVersion;

use crate::flags::features::FeatureFlags;

/// Only component whose version can be set.
const COMPONENT: &str = "kube";

/// Parses both version flags and returns the emulated version.
///
/// # Errors
///
/// An invalid version, or one out of range, in the words of upstream.
///
/// Upstream: `ComponentGlobalsRegistry.Set`, `effectiveVersion.Validate`.
pub(super) fn emulation_version(flags: &FeatureFlags) -> anyhow::Result<KubeVersion> {
    let newest = KubeVersion::NEWEST;
    let emulated = version_of(&flags.emulated_version)?.unwrap_or_default();
    let compatible = version_of(&flags.min_compatibility_version)?;
    let compatible = compatible.unwrap_or_else(|| emulated.previous());
    let floor = KubeVersion::EMULATION_FLOOR;
    ensure!(
        (floor..=newest).contains(&emulated),
        "emulation version {emulated} is not between [{floor}, {newest}]"
    );
    let floor = KubeVersion::COMPATIBILITY_FLOOR;
    ensure!(
        (floor..=emulated).contains(&compatible),
        "minCompatibilityVersion version {compatible} is not between [{floor}, {emulated}]"
    );
    Ok(emulated)
}

/// Version in a list of `version` or `component=version` entries; `None` for an empty list.
///
/// Upstream: `toVersionMap`.
fn version_of(entries: &[String]) -> anyhow::Result<Option<KubeVersion>> {
    let mut found = None;
    for entry in entries {
        let (component, text) = entry.split_once('=').unwrap_or((COMPONENT, entry));
        let (component, text) = (component.trim(), text.trim());
        let version: KubeVersion = text.parse()?;
        let patch = text.split('.').nth(2).unwrap_or("0");
        ensure!(
            patch == "0",
            "patch version not allowed, got: {component}={}",
            text.trim_start_matches('v')
        );
        if let Some(earlier) = found {
            bail!("duplicate version flag, {COMPONENT}={earlier} and {component}={version}");
        }
        ensure!(
            component == COMPONENT,
            "component not registered: {component}"
        );
        found = Some(version);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(emulated: &str, compatible: &str) -> anyhow::Result<KubeVersion> {
        let list = |text: &str| {
            let entries = text.split(',').filter(|entry| !entry.is_empty());
            entries.map(str::to_owned).collect()
        };
        emulation_version(&FeatureFlags {
            feature_gates: String::new(),
            emulated_version: list(emulated),
            min_compatibility_version: list(compatible),
        })
    }

    #[test]
    fn three_earlier_versions_and_the_next_can_be_emulated() {
        for (emulated, compatible, minor) in [
            ("", "", 36),
            ("1.36", "", 36),
            ("kube=1.33", "", 33),
            ("v1.34.0", "1.32", 34),
            ("", "kube=1.36", 36),
            ("1.33", "1.33", 33),
            ("1.37", "", 37),
            ("1.37", "1.36", 37),
        ] {
            let version = versions(emulated, compatible).unwrap();
            assert_eq!(version, KubeVersion::v1(minor), "{emulated} {compatible}");
        }
    }

    #[test]
    fn errors_match_the_reference() {
        for (emulated, compatible, expected) in [
            (
                "1.32",
                "",
                "emulation version 1.32 is not between [1.33, 1.37]",
            ),
            (
                "1.38",
                "",
                "emulation version 1.38 is not between [1.33, 1.37]",
            ),
            (
                "1.34",
                "1.35",
                "minCompatibilityVersion version 1.35 is not between [1.32, 1.34]",
            ),
            (
                "",
                "1.31",
                "minCompatibilityVersion version 1.31 is not between [1.32, 1.36]",
            ),
            ("1.35.2", "", "patch version not allowed, got: kube=1.35.2"),
            (
                "1.35,kube=1.34",
                "",
                "duplicate version flag, kube=1.35 and kube=1.34",
            ),
            ("other=1.35", "", "component not registered: other"),
            ("1", "", "illegal version string \"1\""),
        ] {
            let error = versions(emulated, compatible).unwrap_err().to_string();
            assert_eq!(error, expected, "{emulated} {compatible}");
        }
    }
}
