//! Durations in the format of Go's flags: `12h`, `1h30m`, `1.5s`, `0`.

use std::time::Duration;

/// Go's units in nanoseconds; `µ` has two code points.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("h", 3600 * 1_000_000_000),
];
/// Longest duration that Go can represent, in nanoseconds: about 292 years.
const NANOSECONDS_MAX: u64 = i64::MAX as u64;
/// Limit of significant fraction digits: further ones are below a nanosecond in every unit.
const FRACTION_DIGITS_MAX: usize = 18;

/// Parses a non-negative duration.
///
/// Upstream: `time.ParseDuration`.
pub fn parse(text: &str) -> Option<Duration> {
    if text.starts_with('-') {
        return None;
    }
    parse_clamped(text).ok()
}

/// Parses a duration; a negative one counts as zero.
///
/// # Errors
/// Go's message about the text.
pub fn parse_clamped(text: &str) -> Result<Duration, String> {
    let magnitude = text.strip_prefix(['+', '-']).unwrap_or(text);
    let nanoseconds = sum_of_parts(magnitude).map_err(|wrong| match wrong {
        Wrong::Syntax => format!("time: invalid duration {text:?}"),
        Wrong::NoUnit => format!("time: missing unit in duration {text:?}"),
        Wrong::Unit(unit) => format!("time: unknown unit {unit:?} in duration {text:?}"),
    })?;
    let is_negative = text.starts_with('-');
    Ok(Duration::from_nanos(if is_negative {
        0
    } else {
        nanoseconds
    }))
}

/// Formats a duration in hours, minutes and seconds; below one second, in a smaller unit.
///
/// Upstream: `time.Duration.String`.
pub fn format(duration: Duration) -> String {
    let with_unit = |whole: u128, of: u128, unit: &str| {
        let digits = of.ilog10() as usize;
        let text = format!("{}.{:0digits$}", whole / of, whole % of);
        format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
    };
    let nanoseconds = duration.as_nanos();
    match nanoseconds {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanoseconds}ns"),
        1_000..1_000_000 => with_unit(nanoseconds, 1_000, "\u{b5}s"),
        1_000_000..1_000_000_000 => with_unit(nanoseconds, 1_000_000, "ms"),
        _ => {
            let minute = 60 * 1_000_000_000;
            let seconds = with_unit(nanoseconds % minute, 1_000_000_000, "s");
            match (nanoseconds / minute / 60, nanoseconds / minute % 60) {
                (0, 0) => seconds,
                (0, minutes) => format!("{minutes}m{seconds}"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}"),
            }
        }
    }
}

/// The reason why a text isn't a duration.
enum Wrong<'a> {
    /// A number is missing or too large.
    Syntax,
    /// A number has no unit.
    NoUnit,
    /// A number has this unit.
    Unit(&'a str),
}

/// Parses a duration without sign. Returns its nanoseconds.
fn sum_of_parts(text: &str) -> Result<u64, Wrong<'_>> {
    if text == "0" {
        return Ok(0);
    }
    if text.is_empty() {
        return Err(Wrong::Syntax);
    }
    let mut rest = text;
    let mut total = 0_u64;
    while !rest.is_empty() {
        let (nanoseconds, after) = parse_part(rest)?;
        total = u64::try_from(nanoseconds)
            .ok()
            .and_then(|part| total.checked_add(part))
            .filter(|sum| *sum <= NANOSECONDS_MAX)
            .ok_or(Wrong::Syntax)?;
        rest = after;
    }
    Ok(total)
}

/// Parses one number with its unit. Returns its nanoseconds and the remaining text.
fn parse_part(text: &str) -> Result<(u128, &str), Wrong<'_>> {
    let (whole, rest) = split_digits(text);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    if whole.is_empty() && fraction.is_empty() {
        return Err(Wrong::Syntax);
    }
    let unit_end = rest
        .find(|c: char| c == '.' || c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().map_err(|_| Wrong::Syntax)?
    };
    if unit.is_empty() {
        return Err(Wrong::NoUnit);
    }
    let (_, unit) = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or(Wrong::Unit(unit))?;

    let mut numerator = 0;
    let mut denominator = 1;
    for digit in fraction.bytes().take(FRACTION_DIGITS_MAX) {
        numerator = numerator * 10 + u128::from(digit - b'0');
        denominator *= 10;
    }
    // 18 digits times 42 bits fit.
    let nanoseconds = u128::from(whole) * unit + numerator * unit / denominator;
    Ok((nanoseconds, rest))
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_matches_go() {
        for (nanoseconds, expected) in [
            (0, "0s"),
            (7, "7ns"),
            (1_500, "1.5\u{b5}s"),
            (500_000_000, "500ms"),
            (1_000_000_000, "1s"),
            (1_020_000_000, "1.02s"),
            (60_000_000_000, "1m0s"),
            (3_600_000_000_000, "1h0m0s"),
            (43_200_000_000_000, "12h0m0s"),
            (5_400_500_000_000, "1h30m0.5s"),
        ] {
            assert_eq!(format(Duration::from_nanos(nanoseconds)), expected);
        }
    }

    #[test]
    fn parse_accepts_all_forms() {
        for (text, nanoseconds) in [
            ("0", 0),
            ("0s", 0),
            ("12h", 43_200_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("+5s", 5_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("250ms", 250_000_000),
            ("3us", 3_000),
            ("3\u{b5}s4ns", 3_004),
            ("0.3333333333333333333h", 1_200_000_000_000 - 1),
        ] {
            assert_eq!(
                parse(text),
                Some(Duration::from_nanos(nanoseconds)),
                "{text}"
            );
        }
    }

    #[test]
    fn parse_rejects_invalid_durations() {
        let too_long = "99999999999999999999h";
        for text in [
            "", "12", "h", "1x", "-1s", ".s", "1 s", "1s ", "s1", "2562048h", too_long,
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn negative_durations_count_as_zero() {
        assert_eq!(parse_clamped("-3s"), Ok(Duration::ZERO));
        assert_eq!(parse_clamped("+2us"), Ok(Duration::from_micros(2)));
        assert_eq!(
            parse_clamped("1h15m30.5s"),
            Ok(Duration::from_millis(4_530_500))
        );
    }

    #[test]
    fn errors_match_go() {
        for (text, expected) in [
            ("abc", "time: invalid duration \"abc\""),
            ("", "time: invalid duration \"\""),
            ("-", "time: invalid duration \"-\""),
            ("5", "time: missing unit in duration \"5\""),
            ("5d", "time: unknown unit \"d\" in duration \"5d\""),
            ("-1.x", "time: unknown unit \"x\" in duration \"-1.x\""),
            ("1.2.3s", "time: missing unit in duration \"1.2.3s\""),
            ("2562048h", "time: invalid duration \"2562048h\""),
        ] {
            assert_eq!(parse_clamped(text), Err(expected.to_owned()));
        }
    }
}
