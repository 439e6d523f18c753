//! Delays of faults and of actors: fixed, or random between two bounds.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kube_apimachinery::go_duration;
use rand::RngExt;
use rand::rngs::StdRng;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::duration;

/// A fixed delay, or a random one between two bounds, both included.
///
/// As text, and in JSON: `500ms`, `2s`, `1.5m`, or a range such as `1s..3s`. JSON may also have
/// `{"min": "1s", "max": "3s"}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    min: Duration,
    max: Duration,
}

/// The error for text that is not a [`Delay`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a duration: it needs a number and a unit of ms, s, m or h, or a range such as \
     1s..3s"
)]
pub struct ParseDelayError(String);

impl Delay {
    /// No delay.
    pub const ZERO: Self = Self {
        min: Duration::ZERO,
        max: Duration::ZERO,
    };

    /// A random delay between the two, both included.
    pub fn between(min: Duration, max: Duration) -> Self {
        Self {
            min,
            max: max.max(min),
        }
    }

    /// Raises the delay to a minimum of `least`.
    #[must_use]
    pub fn at_least(self, least: Duration) -> Self {
        Self::between(self.min.max(least), self.max.max(least))
    }

    /// Returns the shortest delay.
    pub fn min(self) -> Duration {
        self.min
    }

    /// Returns the longest delay.
    pub fn max(self) -> Duration {
        self.max
    }

    /// Reports whether the delay is always zero.
    pub fn is_zero(self) -> bool {
        self.max.is_zero()
    }

    /// Draws a delay between the bounds; a fixed one draws nothing.
    pub(crate) fn draw(self, random: &mut StdRng) -> Duration {
        if self.min == self.max {
            return self.min;
        }
        random.random_range(self.min..=self.max)
    }
}

impl From<Duration> for Delay {
    fn from(time: Duration) -> Self {
        Self::between(time, time)
    }
}

impl FromStr for Delay {
    type Err = ParseDelayError;

    fn from_str(text: &str) -> Result<Self, ParseDelayError> {
        let parse = |text| go_duration::parse(text).ok_or_else(|| ParseDelayError(text.to_owned()));
        let (min, max) = text.split_once("..").unwrap_or((text, text));
        Ok(Self::between(parse(min)?, parse(max)?))
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&duration::format(self.min))?;
        if self.max > self.min {
            write!(f, "..{}", duration::format(self.max))?;
        }
        Ok(())
    }
}

impl Serialize for Delay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DelayVisitor)
    }
}

/// The form of a delay in JSON as a map.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    #[serde(with = "duration")]
    min: Duration,
    #[serde(with = "duration")]
    max: Duration,
}

struct DelayVisitor;

impl<'de> Visitor<'de> for DelayVisitor {
    type Value = Delay;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a delay such as \"500ms\" or \"1s..3s\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Delay, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Delay, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Delay, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Delay, A::Error> {
        let bounds = Bounds::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Delay::between(bounds.min, bounds.max))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn delays_parse_and_print() {
        let fixed: Delay = "2s".parse().unwrap();
        assert_eq!(fixed, Duration::from_secs(2).into());
        let range: Delay = "1s..3s".parse().unwrap();
        assert_eq!(range.to_string(), "1s..3s");
        let long: Delay = "1.5s..2m".parse().unwrap();
        let bounds = (Duration::from_millis(1500), Duration::from_secs(120));
        assert_eq!(long, Delay::between(bounds.0, bounds.1));
        assert_eq!(long.to_string().parse(), Ok(long));
        for text in ["", "5", "s", "-1s", "1d", "1s..x"] {
            assert!(text.parse::<Delay>().is_err(), "{text}");
        }
    }

    #[test]
    fn delays_have_two_forms_in_json() {
        let delay = Delay::between(Duration::ZERO, Duration::from_millis(60));
        for form in [json!("0s..60ms"), json!({"min": "0s", "max": "60ms"})] {
            assert_eq!(Delay::deserialize(&form).unwrap(), delay, "{form}");
        }
        assert_eq!(serde_json::to_value(delay).unwrap(), json!("0s..60ms"));
        for (form, message) in [
            (json!("soon"), "\"soon\" is not a duration"),
            (json!(3), "\"3\" is not a duration"),
            (json!(true), "expected a delay such as"),
            (json!({"min": "1s"}), "missing field `max`"),
            (
                json!({"min": "1s", "max": "2s", "mean": "1s"}),
                "unknown field `mean`",
            ),
        ] {
            let error = Delay::deserialize(&form).unwrap_err().to_string();
            assert!(error.contains(message), "{form}: {error}");
        }
    }
}
