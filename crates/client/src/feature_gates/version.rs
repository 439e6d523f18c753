//! Kubernetes versions to behave like.

use std::fmt;
use std::str::FromStr;

/// A minor version of Kubernetes, such as 1.36.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KubeVersion {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
}

impl KubeVersion {
    /// The version that this project follows.
    pub const REFERENCE: Self = Self::v1(36);
    /// The oldest version that can be emulated: three before the reference.
    pub const EMULATION_FLOOR: Self = Self::v1(33);
    /// The oldest version that can be named as a peer: one before the oldest that can be emulated.
    pub const COMPATIBILITY_FLOOR: Self = Self::v1(32);

    /// Version 1 with a minor version.
    pub const fn v1(minor: u32) -> Self {
        Self { major: 1, minor }
    }

    /// The minor version before this one.
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
        Self::REFERENCE
    }
}

impl fmt::Display for KubeVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A text that is no version; its text is upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("illegal version string {0:?}")]
pub struct IllegalVersion(String);

impl FromStr for KubeVersion {
    type Err = IllegalVersion;

    /// Reads `1.35`, `v1.35`, or a full version such as `1.35.2`, of which the rest is left out.
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
    fn versions_are_read_in_all_forms_and_ordered() {
        for (text, minor) in [
            ("1.9", 9),
            ("1.35", 35),
            ("v1.36", 36),
            ("1.34.2-rc.1+x", 34),
        ] {
            assert_eq!(text.parse(), Ok(KubeVersion::v1(minor)), "{text}");
        }
        assert!(KubeVersion::v1(9) < KubeVersion::v1(10));
        assert_eq!(KubeVersion::REFERENCE.to_string(), "1.36");
        assert_eq!(KubeVersion::v1(36).previous(), KubeVersion::v1(35));
        assert_eq!(KubeVersion::v1(0).previous(), KubeVersion::v1(0));
    }

    #[test]
    fn anything_else_is_refused() {
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
