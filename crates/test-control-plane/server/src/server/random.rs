//! Sources of randomness.

use rand::SeedableRng;
use rand::rngs::StdRng;

/// Separate random sources with one seed, so that one kind of draw never shifts another.
#[derive(Debug)]
pub(crate) struct RandomSources {
    /// Uids of objects and tokens.
    pub uids: StdRng,
    /// Generated names.
    pub names: StdRng,
    /// Default timeouts of watches.
    pub(crate) timeouts: StdRng,
}

impl RandomSources {
    pub(super) fn new(seed: u64) -> Self {
        let mut seeds = StdRng::seed_from_u64(seed);
        let mut source = || StdRng::from_rng(&mut seeds);
        Self {
            uids: source(),
            names: source(),
            timeouts: source(),
        }
    }
}
