//! The only source of randomness, which is seeded.

use std::time::Duration;

use kube_test_control_plane_server::faults::Delay;

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
        let width = delay.max().saturating_sub(delay.min()).as_millis();
        let width = u64::try_from(width).unwrap_or(u64::MAX);
        if width == 0 {
            return delay.min();
        }
        let drawn = self.number(whom, what, nth) % width.saturating_add(1);
        delay.min().saturating_add(Duration::from_millis(drawn))
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
