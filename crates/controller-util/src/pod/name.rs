//! Names of pods, with the set and the ordinal that they state.

use std::fmt;
use std::num::NonZeroU16;
use std::ops::Deref;

/// Splits a pod's name at its last dash into the name of its set and the digits of its ordinal;
/// `None` if no digits follow the dash.
pub fn split_name(name: &str) -> Option<(&str, &str)> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (set, digits) = name.split_at_checked(name.len() - digits)?;
    let set = set.strip_suffix('-')?;
    (!digits.is_empty()).then_some((set, digits))
}

/// A pod's name. Every sync of a set compares the names of all its pods, so a name is parsed only
/// once.
#[derive(Clone, PartialEq, Eq)]
pub struct PodName {
    text: Box<str>,
    /// Position of the ordinal, behind a dash.
    digits: Option<NonZeroU16>,
    is_canonical: bool,
    /// The ordinal; negative without one that fits 31 bits.
    ordinal: i32,
}

impl PodName {
    /// Splits the name at its last dash into the name of its set and its ordinal. The ordinal is
    /// `None` if the digits don't fit 31 bits; the result is `None` without digits.
    ///
    /// Upstream: `getParentNameAndOrdinal`.
    pub fn parent_name_and_ordinal(&self) -> Option<(&str, Option<i32>)> {
        let digits = usize::from(self.digits?.get());
        let ordinal = Some(self.ordinal).filter(|ordinal| *ordinal >= 0);
        Some((self.text.get(..digits - 1)?, ordinal))
    }

    /// Returns true if the name ends with an ordinal of at most 31 bits, without leading zeros.
    pub fn is_canonical(&self) -> bool {
        self.is_canonical
    }
}

impl<T: Into<Box<str>>> From<T> for PodName {
    fn from(text: T) -> Self {
        let text = text.into();
        let split = split_name(&text);
        let position = |set: &str| NonZeroU16::new(u16::try_from(set.len() + 1).ok()?);
        let digits = split.and_then(|(set, _)| position(set));
        let ordinal = split.and_then(|(_, digits)| digits.parse().ok());
        let is_canonical = |(_, digits): (_, &str)| digits == "0" || !digits.starts_with('0');
        Self {
            digits,
            is_canonical: ordinal.is_some() && split.is_some_and(is_canonical),
            ordinal: ordinal.unwrap_or(-1),
            text,
        }
    }
}

impl Default for PodName {
    fn default() -> Self {
        Self::from("")
    }
}

impl From<&PodName> for Box<str> {
    fn from(name: &PodName) -> Self {
        name.text.clone()
    }
}

impl Deref for PodName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for PodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl fmt::Debug for PodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_split_at_the_last_dash() {
        for (name, parsed) in [
            ("web-0", Some(("web", Some(0)))),
            ("web-01", Some(("web", Some(1)))),
            ("web-2147483647", Some(("web", Some(i32::MAX)))),
            ("web-2147483648", Some(("web", None))),
            ("web-99999999999999999999", Some(("web", None))),
            ("web", None),
            ("web-", None),
            ("web-1a", None),
            ("-5", Some(("", Some(5)))),
            ("web-1-2", Some(("web-1", Some(2)))),
            ("web--1", Some(("web-", Some(1)))),
            ("web-+1", None),
            ("web-١", None),
        ] {
            let parsed_name = PodName::from(name);
            assert_eq!(parsed_name.parent_name_and_ordinal(), parsed, "{name}");
            assert_eq!(parsed_name.to_string(), name);
        }
    }

    #[test]
    fn only_ordinals_without_leading_zeros_are_canonical() {
        for name in ["web-0", "web-10", "web-2147483647", "-5"] {
            assert!(PodName::from(name).is_canonical(), "{name}");
        }
        for name in ["web", "web-00", "web-01", "web-2147483648", "web-"] {
            assert!(!PodName::from(name).is_canonical(), "{name}");
        }
    }
}
