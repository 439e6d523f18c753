//! Where what is random comes from.

use rand::SeedableRng;
use rand::rngs::StdRng;

/// Random sources of one seed, one for each use, so that more of one thing shifts no other.
#[derive(Debug)]
pub(crate) struct RandomSources {
    /// Of the uids of objects and tokens.
    pub uids: StdRng,
    /// Of generated names.
    pub names: StdRng,
    /// Of how long watches last that don't say.
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
