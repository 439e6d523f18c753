//! Durations in fault plans, in Go's text form: `1m30s`, `250ms`.

use std::time::Duration;

use kube_apimachinery::go_duration;
use serde::{Deserialize, Deserializer, Serializer};

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

pub(crate) fn serialize<S: Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*duration))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    go_duration::parse(&text).ok_or_else(|| {
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
    use serde_json::Value;

    use super::*;

    fn read(text: &str) -> Option<Duration> {
        deserialize(Value::from(text)).ok()
    }

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
            assert_eq!(read(text), Some(expected), "{text}");
        }
        for text in ["", "5", "-1s", "1d", "s", "1s2"] {
            assert_eq!(read(text), None, "{text}");
        }
        for text in ["90s", "1500ms", "7us", "1ns"] {
            assert_eq!(format(read(text).unwrap()), text);
        }
    }
}
