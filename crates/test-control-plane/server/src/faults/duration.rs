//! Durations in fault plans, in Go's text form: `1m30s`, `250ms`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer};

/// The units with their nanoseconds; a unit precedes its prefixes.
const UNITS: [(&str, f64); 7] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];

/// Parses a sum of numbers with units; `None` for negative durations and other text.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let (_, nanoseconds) = UNITS.iter().find(|(unit, _)| *unit == &rest[..end])?;
        total += number * nanoseconds;
        rest = &rest[end..];
    }
    (!text.is_empty())
        .then(|| Duration::try_from_secs_f64(total / 1e9).ok())
        .flatten()
}

/// Formats a duration with the largest exact unit.
pub(crate) fn format(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    for (unit, size) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
        if nanoseconds.is_multiple_of(size) {
            return format!("{}{unit}", nanoseconds / size);
        }
    }
    format!("{nanoseconds}ns")
}

pub(super) fn serialize<S: Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*duration))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).ok_or_else(|| {
        serde::de::Error::custom(format!(
            "{text:?} is not a duration: it needs numbers with units of ns, us, ms, s, m or h"
        ))
    })
}

/// Optional durations.
pub(super) mod optional {
    use super::{Deserializer, Duration, Serializer};

    #[expect(
        clippy::ref_option,
        reason = "serde hands over a reference to the member"
    )]
    pub(crate) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::serialize(duration, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        super::deserialize(deserializer).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_and_printed() {
        for (text, milliseconds) in [
            ("0", 0),
            ("250ms", 250),
            ("1.5s", 1500),
            ("1m30s", 90_000),
            ("2h", 7_200_000),
            ("500us500us", 1),
        ] {
            let expected = Duration::from_millis(milliseconds);
            assert_eq!(parse(text), Some(expected), "{text}");
        }
        for text in ["", "5", "-1s", "1d", "s", "1s2"] {
            assert_eq!(parse(text), None, "{text}");
        }
        for text in ["90s", "1500ms", "7us", "1ns"] {
            assert_eq!(format(parse(text).unwrap()), text);
        }
    }
}
