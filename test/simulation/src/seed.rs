//! Random streams of a seed.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use rand::SeedableRng as _;
use rand::rngs::StdRng;

/// Returns the stream of random numbers that `name` has under `seed`. Streams are independent: a
/// further draw from one leaves the others as they are.
pub fn stream(seed: u64, name: &str) -> StdRng {
    StdRng::seed_from_u64(derived(seed, name))
}

/// Returns the seed that `name` has under `seed`.
pub fn derived(seed: u64, name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, name).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;

    use super::*;

    #[test]
    fn streams_depend_on_seed_and_name() {
        let first = |seed, name| stream(seed, name).random::<u64>();
        assert_eq!(first(1, "faults"), first(1, "faults"));
        assert_ne!(first(1, "faults"), first(2, "faults"));
        assert_ne!(first(1, "faults"), first(1, "users"));
    }
}
