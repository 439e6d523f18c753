//! Sources of randomness.

use std::sync::{Mutex, PoisonError};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The characters of generated names: no vowels, no ambiguous digits.
const SAFE_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Length of the generated part of a name.
const SUFFIX_LEN: usize = 5;

/// Limit of the prefix of a generated name; longer ones are truncated.
const PREFIX_MAX: usize = 63 - SUFFIX_LEN;

/// The identity of new objects and tokens.
#[derive(Debug)]
pub(crate) struct Random {
    uids: Source,
    names: Source,
}

/// One source of randomness.
#[derive(Debug)]
pub(super) struct Source(Mutex<StdRng>);

/// Returns separate sources with one seed, so that one kind of draw never shifts another. The second
/// one is for default timeouts of watches, the third for reviews of webhooks.
pub(super) fn seeded(seed: u64) -> (Random, Source, Source) {
    let mut seeds = StdRng::seed_from_u64(seed);
    let mut source = || Source(Mutex::new(StdRng::from_rng(&mut seeds)));
    let (uids, names, timeouts, reviews) = (source(), source(), source(), source());
    (Random { uids, names }, timeouts, reviews)
}

impl Source {
    pub(super) fn draw<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns a new uid.
    pub(super) fn uid(&self) -> String {
        let bits: u128 = self.draw(RngExt::random);
        uuid::Builder::from_random_bytes(bits.to_be_bytes())
            .into_uuid()
            .to_string()
    }
}

impl Random {
    /// Returns a new uid of an object.
    pub(crate) fn new_uid(&self) -> String {
        self.uids.uid()
    }

    /// Returns a name with the prefix `prefix`.
    pub(crate) fn generate_name(&self, prefix: &str) -> String {
        let mut end = prefix.len().min(PREFIX_MAX);
        while !prefix.is_char_boundary(end) {
            end -= 1;
        }
        let mut name = prefix[..end].to_owned();
        self.names.draw(|names| {
            for _ in 0..SUFFIX_LEN {
                let index = names.random_range(0..SAFE_ALPHABET.len());
                name.push(char::from(SAFE_ALPHABET[index]));
            }
        });
        name
    }
}
