//! FNV hashing, and the alphabet for hashes in names.

use std::hash::Hasher as _;

use fnv::FnvHasher;

/// Initial value of a 32-bit FNV-1 hash.
pub const FNV1_32_OFFSET: u32 = 2_166_136_261;

/// Multiplier of the 32-bit FNV-1 hash.
const FNV1_32_PRIME: u32 = 16_777_619;

/// Characters of a safe name: no vowels, so no words, and no easily confused characters.
const SAFE_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Continues the 32-bit FNV-1 hash `seed` over `bytes`. Start with [`FNV1_32_OFFSET`].
///
/// FNV-1 multiplies before it mixes in the byte; FNV-1a does the opposite.
///
/// Upstream: `fnv.New32`.
pub fn fnv1_32(bytes: &[u8], seed: u32) -> u32 {
    bytes.iter().fold(seed, |hash, &byte| {
        hash.wrapping_mul(FNV1_32_PRIME) ^ u32::from(byte)
    })
}

/// Returns the 64-bit FNV-1a hash of a text, by which API servers divide collections into shards.
///
/// Upstream: `fnv.New64a`.
pub fn fnv1a_64(text: &str) -> u64 {
    let mut hasher = FnvHasher::default();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// Replaces each character of `text` with one of the safe alphabet.
///
/// Upstream: `rand.SafeEncodeString`.
pub fn safe_encode_string(text: &str) -> String {
    #[expect(clippy::indexing_slicing, reason = "a remainder is below the length")]
    let safe = |character| SAFE_ALPHABET[u32::from(character) as usize % SAFE_ALPHABET.len()];
    text.chars()
        .map(|character| char::from(safe(character)))
        .collect()
}

#[cfg(test)]
mod tests;
