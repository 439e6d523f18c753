//! Go's `strconv`.

/// Parses a decimal integer.
///
/// # Errors
///
/// Go's message if the text is no integer, or one outside of 64 bits.
///
/// Upstream: `ParseInt`
pub(crate) fn parse_int(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let why = if is_number {
            "value out of range"
        } else {
            "invalid syntax"
        };
        format!("strconv.ParseInt: parsing {text:?}: {why}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_go() {
        assert_eq!(parse_int("-7"), Ok(-7));
        let wrong = |text: &str| parse_int(text).unwrap_err();
        assert_eq!(
            wrong("x"),
            "strconv.ParseInt: parsing \"x\": invalid syntax"
        );
        let huge = "9223372036854775808";
        assert!(wrong(huge).ends_with(": value out of range"));
    }
}
