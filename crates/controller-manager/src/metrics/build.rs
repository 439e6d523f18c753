//! The constant families `kubernetes_build_info` and `kubernetes_feature_enabled`.

use prometheus::{Error, IntGaugeVec, Opts, Registry};
use statefulset_client::feature_gates::KubeVersion;

/// Patch version of upstream, v1.36.2.
const UPSTREAM_PATCH: u32 = 2;

/// A feature gate: name, stage as in the label (`ALPHA`, `BETA`, empty once generally available),
/// and whether it is on.
pub(crate) type Feature = (&'static str, &'static str, bool);

/// Kubernetes release that the program reproduces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) patch: u32,
}

impl Release {
    /// Returns the release whose behaviour a version needs: upstream, which emulates the
    /// earlier versions, or a later version's first release.
    pub(crate) fn at(version: KubeVersion) -> Self {
        let KubeVersion { major, minor } = version.max(KubeVersion::UPSTREAM);
        let is_upstream = version <= KubeVersion::UPSTREAM;
        let patch = if is_upstream { UPSTREAM_PATCH } else { 0 };
        Self {
            major,
            minor,
            patch,
        }
    }
}

/// Registers the release. Tools compare `git_version` with that of other components, so it is the
/// version of Kubernetes, with the program's own version as build metadata.
///
/// Upstream: `component-base/metrics/prometheus/version`.
pub(super) fn register_build_info(registry: &Registry, release: Release) -> Result<(), Error> {
    let Release {
        major,
        minor,
        patch,
    } = release;
    let own = env!("CARGO_PKG_VERSION");
    let version = format!("v{major}.{minor}.{patch}+statefulset-controller-manager.{own}");
    let (os, arch) = (std::env::consts::OS, go_arch(std::env::consts::ARCH));
    let options = Opts::new(
        "kubernetes_build_info",
        "[BETA] A metric with a constant '1' value labeled by major, minor, git version, git \
         commit, git tree state, build date, Go version, and compiler from which Kubernetes was \
         built, and platform on which it is running.",
    );
    let labels = [
        ("build_date", ""),
        ("compiler", "rustc"),
        ("git_commit", ""),
        ("git_tree_state", ""),
        ("git_version", &version),
        ("go_version", ""),
        ("major", &major.to_string()),
        ("minor", &minor.to_string()),
        ("platform", &format!("{os}/{arch}")),
    ];
    let info = IntGaugeVec::new(options, &labels.map(|(name, _)| name))?;
    info.with_label_values(&labels.map(|(_, value)| value))
        .set(1);
    registry.register(Box::new(info))
}

/// Registers the feature gates and their state.
///
/// Upstream: `component-base/metrics/prometheus/feature`.
pub(super) fn register_features(registry: &Registry, features: &[Feature]) -> Result<(), Error> {
    let options = Opts::new(
        "kubernetes_feature_enabled",
        "[BETA] This metric records the data about the stage and enablement of a k8s feature.",
    );
    let enabled = IntGaugeVec::new(options, &["name", "stage"])?;
    for (name, stage, on) in features {
        enabled.with_label_values(&[name, stage]).set((*on).into());
    }
    registry.register(Box::new(enabled))
}

/// Architecture by Go's name.
fn go_arch(arch: &str) -> &str {
    match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}
