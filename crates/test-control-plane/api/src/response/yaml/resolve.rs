//! Detection of plain scalars that YAML does not resolve to strings.
//!
//! Upstream: `resolve.go` of Go's YAML reader.

use jiff::civil::Date;

/// The words for true, false, null, infinity and not-a-number.
const WORDS: [&str; 39] = [
    "", "~", "null", "Null", "NULL", "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on",
    "On", "ON", "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", ".nan",
    ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF",
];

/// Returns true if the unquoted text resolves to a string.
pub(super) fn is_string(text: &str) -> bool {
    if WORDS.contains(&text) {
        return false;
    }
    let first = text.chars().next().unwrap_or_default();
    if first == '.' {
        return text.parse::<f64>().is_err();
    }
    if !(first.is_ascii_digit() || matches!(first, '+' | '-')) {
        return true;
    }
    let plain = text.replace('_', "");
    !(is_integer(&plain) || is_float(&plain) || is_date(text) || is_sexagesimal(text))
}

/// Returns true for an integer in any of Go's bases.
fn is_integer(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (digits, base) = match unsigned.get(..2) {
        Some("0x" | "0X") => (&unsigned[2..], 16),
        Some("0o" | "0O") => (&unsigned[2..], 8),
        Some("0b" | "0B") => (&unsigned[2..], 2),
        _ if unsigned.len() > 1 && unsigned.starts_with('0') => (&unsigned[1..], 8),
        _ => (unsigned, 10),
    };
    !digits.is_empty()
        && digits.chars().all(|c| c.is_digit(base))
        && u64::from_str_radix(digits, base).is_ok()
}

/// Returns true for a number with a point or an exponent, or one too large for an integer.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (number, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent)),
        None => (unsigned, None),
    };
    let are_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let is_exponent = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && are_digits(digits)
    });
    let is_number = match number.split_once('.') {
        Some((whole, part)) => {
            are_digits(whole) && are_digits(part) && !(whole.is_empty() && part.is_empty())
        }
        None => !number.is_empty() && are_digits(number),
    };
    is_exponent && is_number && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Returns true for a date, with or without a time, in the formats that Go's reader knows.
fn is_date(text: &str) -> bool {
    let end = text.find(['T', 't', ' ']).unwrap_or(text.len());
    let (day, time) = text.split_at(end);
    let parts: Vec<&str> = day.split('-').collect();
    let [year, month, date] = parts[..] else {
        return false;
    };
    let is_day = year.len() == 4
        && (1..=2).contains(&month.len())
        && (1..=2).contains(&date.len())
        && matches!(
            (year.parse(), month.parse(), date.parse()),
            (Ok(year), Ok(month), Ok(date)) if Date::new(year, month, date).is_ok()
        );
    is_day && (time.is_empty() || is_time(time))
}

/// Returns true for the time after a date: with a zone after `T`, or without one after a space.
fn is_time(text: &str) -> bool {
    let (clock, needs_zone) = match text.strip_prefix(' ') {
        Some(clock) => (clock, false),
        None => (&text[1..], true),
    };
    let zone = clock.find(['Z', '+', '-']).unwrap_or(clock.len());
    let (clock, zone) = clock.split_at(zone);
    let parts: Vec<&str> = clock.split(':').collect();
    let [hour, minute, second] = parts[..] else {
        return false;
    };
    let is_below = |text: &str, limit: f64| text.parse::<f64>().is_ok_and(|n| n < limit);
    let is_clock = is_below(hour, 24.0) && is_below(minute, 60.0) && is_below(second, 60.0);
    let is_zone = zone == "Z" || (zone.len() == 6 && zone.as_bytes()[3] == b':');
    is_clock && (if needs_zone { is_zone } else { zone.is_empty() })
}

/// Returns true for a base-60 number, which some YAML readers resolve to an integer.
fn is_sexagesimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = unsigned.split(':');
    let first = parts.next().unwrap_or_default();
    let is_first = first.starts_with(|c: char| c.is_ascii_digit())
        && first.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let rest: Vec<&str> = parts.collect();
    let Some((last, others)) = rest.split_last() else {
        return false;
    };
    let last = last.split_once('.').map_or(*last, |(whole, _)| whole);
    let is_part = |part: &str| match part.as_bytes() {
        [digit] => digit.is_ascii_digit(),
        [ten, digit] => (b'0'..=b'5').contains(ten) && digit.is_ascii_digit(),
        _ => false,
    };
    is_first && is_part(last) && others.iter().all(|part| is_part(part))
}
