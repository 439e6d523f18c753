//! SHA-256 digests.

use std::fmt::{self, Write as _};

use ring::digest::{SHA256, digest};

/// A SHA-256 digest; displayed as hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(String);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut digits = String::with_capacity(64);
        for byte in digest(&SHA256, bytes).as_ref() {
            // Writing to a string can't fail.
            let _ = write!(digits, "{byte:02x}");
        }
        Self(digits)
    }

    /// The form of the OCI specifications, `sha256:…`.
    pub fn prefixed(&self) -> String {
        format!("sha256:{}", self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_of_nothing_is_the_known_one() {
        let known = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), known);
        assert_eq!(Digest::of(b"").prefixed(), format!("sha256:{known}"));
    }
}
