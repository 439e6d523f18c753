//! Semantic versions.
//!
//! Upstream: `Version` of `github.com/blang/semver`

use std::cmp::Ordering;

/// A version, without its build metadata: these don't count in comparisons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Semver {
    /// Major, minor and patch.
    pub(crate) numbers: [u64; 3],
    pre_release: Vec<PreRelease>,
}

/// An identifier of a version before a release. Numbers come first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PreRelease {
    Number(u64),
    Text(String),
}

impl Semver {
    /// Parses a version.
    ///
    /// Upstream: `Parse`
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (rest, build) = split(rest, '+');
        let (patch, pre_release) = split(rest, '-');
        let version = Self {
            numbers: [
                number("major", major)?,
                number("minor", minor)?,
                number("patch", patch)?,
            ],
            pre_release: pre_release
                .map(PreRelease::read)
                .collect::<Result<_, _>>()?,
        };
        for part in build {
            check_build_metadata(part)?;
        }
        Ok(version)
    }

    /// Parses a version that may lack parts, or have leading zeros or a `v`.
    ///
    /// Upstream: `normalizeAndParse`
    pub(crate) fn parse_loosely(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                let text = "short version cannot contain PreRelease/Build meta data";
                return Err(text.to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse(&parts.join("."))
    }

    /// Compares versions.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        let of_release = self
            .pre_release
            .is_empty()
            .cmp(&other.pre_release.is_empty());
        self.numbers
            .cmp(&other.numbers)
            .then(of_release)
            .then_with(|| self.pre_release.cmp(&other.pre_release))
    }
}

impl PreRelease {
    fn read(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("Prerelease is empty".to_owned()),
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                if digits.len() > 1 && digits.starts_with('0') {
                    return Err(format!(
                        "Numeric PreRelease version must not contain leading zeroes {digits:?}"
                    ));
                }
                parsed(digits).map(Self::Number)
            }
            text if text.bytes().all(is_of_identifier) => Ok(Self::Text(text.to_owned())),
            text => Err(format!("Invalid character(s) found in prerelease {text:?}")),
        }
    }
}

fn check_build_metadata(part: &str) -> Result<(), String> {
    match part {
        "" => Err("Build meta data is empty".to_owned()),
        part if !part.bytes().all(is_of_identifier) => Err(format!(
            "Invalid character(s) found in build meta data {part:?}"
        )),
        _ => Ok(()),
    }
}

fn is_of_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

/// Splits at the first mark, and the rest at its dots.
fn split(text: &str, mark: char) -> (&str, impl Iterator<Item = &str>) {
    let (before, after) = match text.split_once(mark) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    };
    (before, after.into_iter().flat_map(|after| after.split('.')))
}

fn number(name: &str, digits: &str) -> Result<u64, String> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "Invalid character(s) found in {name} number {digits:?}"
        ));
    }
    if digits.len() > 1 && digits.starts_with('0') {
        let name = match name {
            "major" => "Major",
            "minor" => "Minor",
            _ => "Patch",
        };
        return Err(format!(
            "{name} number must not contain leading zeroes {digits:?}"
        ));
    }
    parsed(digits)
}

/// Upstream: `ParseUint` of Go's strconv
fn parsed(digits: &str) -> Result<u64, String> {
    let why = if digits.is_empty() {
        "invalid syntax"
    } else {
        "value out of range"
    };
    let found = digits.parse();
    found.map_err(|_| format!("strconv.ParseUint: parsing {digits:?}: {why}"))
}

/// Removes leading zeros, of which one stays where no digit follows.
fn without_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let rest = part.trim_start_matches('0');
    if rest.starts_with(|c: char| c.is_ascii_digit()) {
        rest.to_owned()
    } else {
        format!("0{rest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_the_order_of_the_specification() {
        let ordered = [
            "0.9.9",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0",
            "1.0.1",
        ];
        for pair in ordered.windows(2) {
            let [one, other] = [pair[0], pair[1]].map(|text| Semver::parse(text).unwrap());
            assert_eq!(one.compare(&other), Ordering::Less, "{pair:?}");
        }
        let [one, other] = ["1.0.0+a", "1.0.0+b"].map(|text| Semver::parse(text).unwrap());
        assert_eq!(one.compare(&other), Ordering::Equal);
        assert_eq!(one, other, "upstream: EQ");
    }

    #[test]
    fn wrong_versions_have_the_reference_errors() {
        for (text, error) in [
            ("", "Version string empty"),
            ("1.0", "No Major.Minor.Patch elements found"),
            ("a.0.0", "Invalid character(s) found in major number \"a\""),
            (
                "1.00.0",
                "Minor number must not contain leading zeroes \"00\"",
            ),
            ("1.0.0-", "Prerelease is empty"),
            (
                "1.0.0-01",
                "Numeric PreRelease version must not contain leading zeroes \"01\"",
            ),
            ("1.0.0+", "Build meta data is empty"),
        ] {
            assert_eq!(Semver::parse(text), Err(error.to_owned()), "{text}");
        }
        for (text, same) in [
            ("v1", "1.0.0"),
            ("v01.02", "1.2.0"),
            ("1.2.003-a", "1.2.3-a"),
        ] {
            assert_eq!(Semver::parse_loosely(text), Semver::parse(same), "{text}");
        }
        assert!(Semver::parse_loosely("1.0-a").is_err());
    }
}
