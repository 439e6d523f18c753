//! FNV-1 hashing and the alphabet in which hashes stand in names.

/// The value with which a 32-bit FNV-1 hash begins.
pub const FNV1_32_OFFSET: u32 = 2_166_136_261;

/// The multiplier of the 32-bit FNV-1 hash.
const FNV1_32_PRIME: u32 = 16_777_619;

/// The characters that a safe name may consist of: no vowels, so no words, and nothing that is
/// easily mistaken for something else.
const SAFE_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Continues the 32-bit FNV-1 hash `seed` over `bytes`; [`FNV1_32_OFFSET`] begins one.
///
/// FNV-1 multiplies before it mixes the byte in. It is not FNV-1a.
///
/// Upstream: `fnv.New32`.
pub fn fnv1_32(bytes: &[u8], seed: u32) -> u32 {
    bytes.iter().fold(seed, |hash, &byte| {
        hash.wrapping_mul(FNV1_32_PRIME) ^ u32::from(byte)
    })
}

/// Replaces each character of `text` by one of the safe alphabet.
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
