//! Go's durations, such as `1h15m30.5s`.

use std::time::Duration;

/// The units and their length in nanoseconds.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];

/// Parses a duration; a negative one counts as zero.
///
/// # Errors
///
/// Go's message about the text.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let (sign, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (-1.0, &text[1..]),
        Some(b'+') => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut nanoseconds = 0.0;
    while !rest.is_empty() {
        let end = end_of(rest, |c| c.is_ascii_digit() || c == '.');
        let (number, after) = rest.split_at(end);
        let number: f64 = number.parse().map_err(|_| invalid())?;
        let end = end_of(after, |c| !c.is_ascii_digit() && c != '.');
        let (unit, after) = after.split_at(end);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {text:?}"));
        }
        let found = UNITS.iter().find(|(name, _)| *name == unit);
        let (_, factor) =
            found.ok_or_else(|| format!("time: unknown unit {unit:?} in duration {text:?}"))?;
        nanoseconds += number * factor;
        rest = after;
    }
    Duration::try_from_secs_f64((sign * nanoseconds).max(0.0) / 1e9).map_err(|_| invalid())
}

fn end_of(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_as_in_go() {
        assert_eq!(parse("1h15m30.5s"), Ok(Duration::from_millis(4_530_500)));
        assert_eq!(parse("0"), Ok(Duration::ZERO));
        assert_eq!(parse("-3s"), Ok(Duration::ZERO));
        assert_eq!(parse("+2us"), Ok(Duration::from_micros(2)));
    }

    #[test]
    fn errors_match_go() {
        for (text, wanted) in [
            ("abc", "time: invalid duration \"abc\""),
            ("", "time: invalid duration \"\""),
            ("5", "time: missing unit in duration \"5\""),
            ("5d", "time: unknown unit \"d\" in duration \"5d\""),
            ("1.2.3s", "time: invalid duration \"1.2.3s\""),
        ] {
            assert_eq!(parse(text), Err(wanted.to_owned()));
        }
    }
}
