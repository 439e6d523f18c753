//! Texts with masks for values that differ between runs.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::fmt::strtime;

/// Characters of generated names: no vowels and no similar-looking characters.
const SAFE_ALPHABET: &str = "bcdfghjklmnpqrstvwxz2456789";

/// Length of a generated suffix.
const SUFFIX_LENGTH: usize = 5;

/// Time formats of kubectl and diff, other than RFC 3339.
const PRINTED_TIMES: [&str; 2] = ["%a, %d %b %Y %H:%M:%S %z", "%Y-%m-%d %H:%M:%S%.9f %z"];

/// Classes of masked values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mask {
    Uid,
    Version,
    Time,
    Token,
    Suffix,
    Age,
    Number,
}

const MASKS: [(&str, Mask); 7] = [
    ("<uid>", Mask::Uid),
    ("<rv>", Mask::Version),
    ("<time>", Mask::Time),
    ("<token>", Mask::Token),
    ("<suffix>", Mask::Suffix),
    ("<age>", Mask::Age),
    ("<n>", Mask::Number),
];

/// Matches masked texts with real ones.
#[derive(Clone, Debug, Default)]
pub struct Masks {
    /// Uids sent by the case, which needn't be UUIDs.
    pub sent_uids: BTreeSet<String>,
}

impl Masks {
    /// Returns true if a text matches the masked one.
    pub fn match_text(&self, masked: &str, text: &str) -> bool {
        let first = MASKS
            .iter()
            .filter_map(|(name, mask)| Some((masked.find(name)?, *name, *mask)))
            .min();
        let Some((start, name, mask)) = first else {
            return masked == text;
        };
        let Some(rest) = text.strip_prefix(&masked[..start]) else {
            return false;
        };
        let after = &masked[start + name.len()..];
        (0..=rest.len())
            .filter(|end| rest.is_char_boundary(*end))
            .any(|end| self.is_of(mask, &rest[..end]) && self.match_text(after, &rest[end..]))
    }

    fn is_of(&self, mask: Mask, text: &str) -> bool {
        match mask {
            Mask::Uid => is_uuid(text) || self.sent_uids.contains(text),
            Mask::Version | Mask::Number => is_number(text),
            Mask::Time => is_time(text),
            Mask::Token => !text.is_empty(),
            Mask::Suffix => {
                text.len() == SUFFIX_LENGTH && text.chars().all(|c| SAFE_ALPHABET.contains(c))
            }
            Mask::Age => is_age(text),
        }
    }
}

/// Masks the uids, times and resource versions in the JSON text that a message quotes.
pub fn mask_quoted(message: &str) -> String {
    const QUOTE: &str = "\\\"";
    let parts: Vec<&str> = message.split(QUOTE).collect();
    let masked = parts.iter().enumerate().map(|(index, part)| {
        let name = index.checked_sub(2).map(|name| parts[name]);
        if is_uuid(part) {
            "<uid>"
        } else if is_time(part) {
            "<time>"
        } else if name == Some("resourceVersion") && is_number(part) {
            "<rv>"
        } else {
            part
        }
    });
    masked.collect::<Vec<_>>().join(QUOTE)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| group.bytes().all(is_hex))
}

fn is_time(text: &str) -> bool {
    let is_rfc3339 = text.contains('T') && text.parse::<Timestamp>().is_ok();
    let is_printed = |format| strtime::parse(format, text).is_ok();
    is_rfc3339 || PRINTED_TIMES.into_iter().any(is_printed)
}

/// Returns true if a text is a duration in kubectl's format of ages: one or two numbers with units,
/// the larger unit first.
fn is_age(text: &str) -> bool {
    const UNITS: &str = "ydhms";
    let parts: Vec<&str> = text
        .split_inclusive(|c: char| c.is_ascii_alphabetic())
        .collect();
    let units: Option<Vec<usize>> = parts
        .iter()
        .map(|part| {
            let unit = part.chars().next_back()?;
            let number = part.strip_suffix(unit)?;
            is_number(number).then_some(UNITS.find(unit)?)
        })
        .collect();
    units.is_some_and(|units| (1..=2).contains(&units.len()) && units.is_sorted_by(|a, b| a < b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(masked: &str, text: &str) -> bool {
        Masks::default().match_text(masked, text)
    }

    #[test]
    fn each_mask_matches_only_its_class() {
        for (mask, good, bad) in [
            (
                "<uid>",
                "4d313bd3-0597-4f0d-9147-77370621f214",
                "4d313bd3-0597-4f0d-9147",
            ),
            ("<rv>", "17", "x17"),
            ("<n>", "0", ""),
            ("<time>", "2026-11-21T00:25:18Z", "2026-11-21"),
            ("<time>", "2026-11-21T00:25:18.123456Z", "T"),
            ("<time>", "Sat, 21 Nov 2026 00:25:18 +0000", "Sat, 21 Nov"),
            (
                "<time>",
                "2026-11-21 00:25:18.123456789 +0000",
                "2026-11-21 00:25",
            ),
            ("<suffix>", "bc2x9", "aeiou"),
            ("<age>", "4m38s", "38s4m"),
            ("<age>", "0s", "s"),
            ("<age>", "3d", "3"),
            ("<age>", "2y11d", "1y2d3h"),
        ] {
            assert!(matches(mask, good), "{mask} {good}");
            assert!(!matches(mask, bad), "{mask} {bad}");
        }
    }

    #[test]
    fn values_in_quoted_json_are_masked() {
        let message = r#"patch: Invalid value: "{\"uid\":\"4d313bd3-0597-4f0d-9147-77370621f214\",\"resourceVersion\":\"17\",\"time\":\"2026-11-21T00:25:18Z\",\"a\":\"17\"}""#;
        let masked = r#"patch: Invalid value: "{\"uid\":\"<uid>\",\"resourceVersion\":\"<rv>\",\"time\":\"<time>\",\"a\":\"17\"}""#;
        assert_eq!(mask_quoted(message), masked);
    }

    #[test]
    fn masks_match_within_texts() {
        assert!(matches("web-<suffix> at <rv>!", "web-bcdfg at 3!"));
        assert!(!matches("web-<suffix> at <rv>!", "web-bcdfg at 3"));
        assert!(matches("<age> <age>", "1m 2s"));
    }

    #[test]
    fn uids_sent_by_the_case_need_not_be_uuids() {
        let masks = Masks {
            sent_uids: BTreeSet::from(["u1".to_owned()]),
        };
        assert!(masks.match_text("uid <uid>", "uid u1"));
        assert!(!masks.match_text("uid <uid>", "uid u2"));
    }
}
