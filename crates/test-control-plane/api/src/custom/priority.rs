//! The order of versions: stable ones first, newer ones first.
//!
//! Upstream: `version.CompareKubeAwareVersionStrings`.

use std::cmp::{Ordering, Reverse};

/// A version in the form `v1`, `v2beta1` or `v3alpha1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    stage: u8,
    major: u64,
    minor: u64,
}

/// Compares two versions by priority; the preferred one comes first.
pub fn by_priority(one: &str, other: &str) -> Ordering {
    match (rank(one), rank(other)) {
        (Some(one), Some(other)) => Reverse(one).cmp(&Reverse(other)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.cmp(other),
    }
}

fn rank(version: &str) -> Option<Rank> {
    let rest = version.strip_prefix('v')?;
    let (major, rest) = number(rest)?;
    if rest.is_empty() {
        return Some(Rank {
            stage: 2,
            major,
            minor: 0,
        });
    }
    let (stage, rest) = match (rest.strip_prefix("alpha"), rest.strip_prefix("beta")) {
        (Some(rest), _) => (0, rest),
        (None, Some(rest)) => (1, rest),
        (None, None) => return None,
    };
    let (minor, rest) = number(rest)?;
    rest.is_empty().then_some(Rank {
        stage,
        major,
        minor,
    })
}

/// Splits a positive number without leading zeros off the beginning.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let number = digits.parse().ok()?;
    (!digits.starts_with('0')).then_some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_and_newer_versions_come_first() {
        let mut versions = [
            "foo", "v1alpha1", "v2beta1", "v1", "v10", "v1beta10", "a", "v01",
        ];
        versions.sort_by(|one, other| by_priority(one, other));
        let wanted = [
            "v10", "v1", "v2beta1", "v1beta10", "v1alpha1", "a", "foo", "v01",
        ];
        assert_eq!(versions, wanted);
    }
}
