//! Simulated delays, and the only source of randomness, which is seeded.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kube_apimachinery::go_duration;
use serde::{Deserialize, Serialize};

/// A fixed delay, or a random one between two bounds.
///
/// As text: `500ms`, `2s`, `1.5m`, or a range such as `1s..3s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
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
    pub(super) fn at_least(self, least: Duration) -> Self {
        Self::between(self.min.max(least), self.max.max(least))
    }

    /// Reports whether the delay is always zero.
    pub fn is_zero(self) -> bool {
        self.max.is_zero()
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

impl TryFrom<String> for Delay {
    type Error = ParseDelayError;

    fn try_from(text: String) -> Result<Self, ParseDelayError> {
        text.parse()
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.min.as_millis())?;
        if self.max > self.min {
            write!(f, "..{}ms", self.max.as_millis())?;
        }
        Ok(())
    }
}

impl From<Delay> for String {
    fn from(delay: Delay) -> Self {
        delay.to_string()
    }
}

/// A seeded generator of named draws. The name isolates draws: one more of them shifts no other. It
/// must not depend on concurrent work, as uids do.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeededRng {
    seed: u64,
}

impl SeededRng {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Draws the delay for the `nth` time that `what` happens to the object `whom`.
    pub(super) fn draw(self, delay: Delay, whom: &str, what: &str, nth: u32) -> Duration {
        let width =
            u64::try_from(delay.max.saturating_sub(delay.min).as_millis()).unwrap_or(u64::MAX);
        if width == 0 {
            return delay.min;
        }
        let drawn = self.number(whom, what, nth) % width.saturating_add(1);
        delay.min.saturating_add(Duration::from_millis(drawn))
    }

    /// Returns a number that depends only on the seed and the draw's name.
    pub(super) fn number(self, whom: &str, what: &str, nth: u32) -> u64 {
        // FNV-1a over the name, then SplitMix64's final mixing steps.
        let mut hash = 0xcbf2_9ce4_8422_2325 ^ self.seed;
        let bytes = [whom.as_bytes(), &[0], what.as_bytes(), &nth.to_le_bytes()].concat();
        for byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^ (hash >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_parse_and_print() {
        let fixed: Delay = "2s".parse().unwrap();
        assert_eq!(fixed, Duration::from_secs(2).into());
        let range: Delay = "1s..3s".parse().unwrap();
        assert_eq!(range.to_string(), "1000ms..3000ms");
        assert_eq!(range.to_string().parse(), Ok(range));
        let long: Delay = "1.5s..2m".parse().unwrap();
        let bounds = (Duration::from_millis(1500), Duration::from_secs(120));
        assert_eq!(long, Delay::between(bounds.0, bounds.1));
        for text in ["", "5", "s", "-1s", "1d", "1s..x"] {
            assert!(text.parse::<Delay>().is_err(), "{text}");
        }
    }

    #[test]
    fn draws_stay_in_range_and_depend_on_their_name() {
        let rng = SeededRng::new(7);
        let delay = Delay::between(Duration::from_secs(1), Duration::from_secs(3));
        let draws: Vec<Duration> = (0..50)
            .map(|nth| rng.draw(delay, "web-0", "ready", nth))
            .collect();
        assert!(draws.iter().all(|d| (1000..=3000).contains(&d.as_millis())));
        assert!(draws.iter().any(|draw| *draw != draws[0]));
        assert_eq!(rng.draw(delay, "web-0", "ready", 3), draws[3]);
        assert_ne!(SeededRng::new(8).draw(delay, "web-0", "ready", 3), draws[3]);
    }
}
