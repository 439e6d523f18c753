//! Comparison of resource versions as decimal numbers of any length.

use std::cmp::Ordering;

/// A resource version that can't be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("resource version {0:?} is not a positive decimal number without leading zeros")]
pub struct InvalidResourceVersion(String);

fn validate(text: &str) -> Result<(), InvalidResourceVersion> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if text.is_empty() || !digits || text.starts_with('0') {
        return Err(InvalidResourceVersion(text.to_owned()));
    }
    Ok(())
}

/// Compares two resource versions: the longer number is newer, equal lengths compare as text.
///
/// # Errors
///
/// Either side is empty, contains a character other than an ASCII digit, or starts with `0`
/// (including `0` itself).
///
/// Upstream: `resourceversion.CompareResourceVersion`.
pub fn compare(a: &str, b: &str) -> Result<Ordering, InvalidResourceVersion> {
    validate(a)?;
    validate(b)?;
    Ok(a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_numbers_are_newer_and_equal_lengths_compare_as_text() {
        assert_eq!(compare("9", "10"), Ok(Ordering::Less));
        assert_eq!(compare("20", "10"), Ok(Ordering::Greater));
        assert_eq!(compare("7", "7"), Ok(Ordering::Equal));
        let huge = "184467440737095516160000";
        assert_eq!(compare(huge, "18446744073709551615"), Ok(Ordering::Greater));
    }

    #[test]
    fn compare_rejects_zero_empty_and_non_decimal_texts() {
        for bad in ["", "0", "01", "a", "-1", "1 "] {
            assert!(compare(bad, "1").is_err(), "{bad:?}");
            assert!(compare("1", bad).is_err(), "{bad:?}");
        }
    }
}
