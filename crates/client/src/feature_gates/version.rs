//! Kubernetes versions to emulate.

use std::fmt;
use std::str::FromStr;

/// A minor version of Kubernetes, such as 1.36.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KubeVersion {
    /// The major version.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
}

impl KubeVersion {
    /// The version of upstream, which is the default.
    pub const UPSTREAM: Self = Self::v1(36);
    /// The newest version to emulate. It is built from its sources; no recordings exist.
    pub const NEWEST: Self = Self::v1(37);
    /// The oldest version to emulate: three before upstream.
    pub const EMULATION_FLOOR: Self = Self::v1(33);
    /// The oldest version accepted as a peer: one before the oldest to emulate.
    pub const COMPATIBILITY_FLOOR: Self = Self::v1(32);

    /// Returns version 1 with this minor version.
    pub const fn v1(minor: u32) -> Self {
        Self { major: 1, minor }
    }

    /// Returns the previous minor version.
    #[must_use]
    pub fn previous(self) -> Self {
        Self {
            minor: self.minor.saturating_sub(1),
            ..self
        }
    }
}

impl Default for KubeVersion {
    fn default() -> Self {
        Self::UPSTREAM
    }
}

impl fmt::Display for KubeVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// An invalid version; the message is upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("illegal version string {0:?}")]
pub struct IllegalVersion(String);

impl FromStr for KubeVersion {
    type Err = IllegalVersion;

    /// Parses `1.35`, `v1.35`, or a full version such as `1.35.2`, ignoring the patch version.
    ///
    /// Upstream: `version.Parse`, `majorMinor`.
    fn from_str(text: &str) -> Result<Self, IllegalVersion> {
        let numbers = text.strip_prefix('v').unwrap_or(text);
        let mut numbers = numbers.split('.');
        let mut number = || {
            let digits = numbers.next()?;
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit())
                && (digits.len() == 1 || !digits.starts_with('0'));
            digits.parse().ok().filter(|_| plain)
        };
        let (Some(major), Some(minor)) = (number(), number()) else {
            return Err(IllegalVersion(text.to_owned()));
        };
        Ok(Self { major, minor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_parse_in_all_forms_and_sort() {
        for (text, minor) in [
            ("1.9", 9),
            ("1.35", 35),
            ("v1.36", 36),
            ("1.34.2-rc.1+x", 34),
        ] {
            assert_eq!(text.parse(), Ok(KubeVersion::v1(minor)), "{text}");
        }
        assert!(KubeVersion::v1(9) < KubeVersion::v1(10));
        assert_eq!(KubeVersion::UPSTREAM.to_string(), "1.36");
        assert_eq!(KubeVersion::v1(36).previous(), KubeVersion::v1(35));
        assert_eq!(KubeVersion::v1(0).previous(), KubeVersion::v1(0));
    }

    #[test]
    fn invalid_versions_are_rejected() {
        for text in [
            "",
            "1",
            "1.",
            "1.x",
            "x.1",
            "1.036",
            "-1.3",
            "1. 3",
            "1.99999999999",
        ] {
            let error = text.parse::<KubeVersion>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("illegal version string {text:?}")
            );
        }
    }
}
