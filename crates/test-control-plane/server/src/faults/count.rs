//! Fixed or random counts, drawn by the seed of their rule.

use rand::RngExt;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

/// A count. In JSON `3`, or `{"min": 1, "max": 12}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Count {
    /// Always the same.
    Exactly(u32),
    /// A value from `min` to `max`, drawn for each use.
    Between {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
}

impl Count {
    pub(crate) fn draw(self, random: &mut StdRng) -> u32 {
        match self {
            Self::Exactly(count) => count,
            Self::Between { min, max } if min < max => random.random_range(min..=max),
            Self::Between { min, .. } => min,
        }
    }
}

impl Default for Count {
    fn default() -> Self {
        Self::Exactly(0)
    }
}

impl From<u32> for Count {
    fn from(count: u32) -> Self {
        Self::Exactly(count)
    }
}
