//! Times in Go's format: RFC 3339, whole seconds, UTC.

use std::str::FromStr;

use jiff::SignedDuration;
use jiff::civil::DateTime;

use crate::int_or_string::go_quote;

/// Layout in Go's error texts about times.
const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";

/// Layout of times with microseconds.
const MICRO_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Returns the time in Go's format; `None` for Go's zero time, the first second of year 1.
///
/// # Errors
///
/// Go's text, if this is not an RFC 3339 time. Like Go, it accepts an hour of one digit and a comma
/// before the fraction.
///
/// Upstream: `metav1.Time.UnmarshalJSON` and `MarshalJSON`.
pub fn canonical(text: &str) -> Result<Option<String>, String> {
    read(text, LAYOUT)
}

/// Like [`canonical`], for a time with exactly six digits after the dot.
///
/// # Errors
/// Go's text, if this is not such a time.
///
/// Upstream: `metav1.MicroTime.UnmarshalJSON` and `MarshalJSON`.
pub(super) fn canonical_micro(text: &str) -> Result<Option<String>, String> {
    read(text, MICRO_LAYOUT)
}

fn read(text: &str, layout: &'static str) -> Result<Option<String>, String> {
    let mut scanner = Scanner {
        text,
        layout,
        rest: text,
    };
    let year = scanner.number(4, "2006")?;
    scanner.literal("-")?;
    let month = scanner.ranged(2, "01", 1..=12, "month")?;
    scanner.literal("-")?;
    let day = scanner.number(2, "02")?;
    scanner.literal("T")?;
    let hour_digits = if scanner.digits_ahead() == 1 { 1 } else { 2 };
    let hour = scanner.ranged(hour_digits, "15", 0..=23, "hour")?;
    scanner.literal(":")?;
    let minute = scanner.ranged(2, "04", 0..=59, "minute")?;
    scanner.literal(":")?;
    let second = scanner.ranged(2, "05", 0..=59, "second")?;
    let fraction = if layout == MICRO_LAYOUT {
        scanner.six_digits()?
    } else {
        scanner.fraction();
        ""
    };
    let offset = scanner.zone()?;
    if !scanner.rest.is_empty() {
        return Err(scanner.failure(&format!(": extra text: {}", go_quote(scanner.rest))));
    }
    let narrow = |number: i16| i8::try_from(number).unwrap_or(i8::MAX);
    let [month, day, hour, minute, second] = [month, day, hour, minute, second].map(narrow);
    let local = DateTime::new(year, month, day, hour, minute, second, 0)
        .map_err(|_| scanner.failure(": day out of range"))?;
    let (utc, years) = shifted(local, -offset);
    let is_zero = utc == DateTime::constant(1, 1, 1, 0, 0, 0, 0)
        && years == 0
        && fraction.bytes().all(|digit| digit == b'0');
    Ok((!is_zero).then(|| format(utc, years, fraction)))
}

/// Years after which the calendar repeats.
const ERA: i16 = 400;

/// Returns the time `seconds` later, with a number of years to add: a result beyond the range of
/// the date type is shifted back by an era.
fn shifted(time: DateTime, seconds: i64) -> (DateTime, i16) {
    let later = SignedDuration::from_secs(seconds);
    if let Ok(shifted) = time.checked_add(later) {
        return (shifted, 0);
    }
    let earlier = time.with().year(time.year() - ERA).build();
    let shifted = earlier.and_then(|earlier| earlier.checked_add(later));
    (shifted.unwrap_or(time), ERA)
}

fn format(utc: DateTime, years: i16, fraction: &str) -> String {
    let (date, time) = (utc.date(), utc.time());
    let dot = if fraction.is_empty() { "" } else { "." };
    let year = date.year() + years;
    // Go's digit count of a year excludes the sign.
    let sign = if year < 0 { "-" } else { "" };
    format!(
        "{sign}{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{dot}{fraction}Z",
        year.unsigned_abs(),
        date.month(),
        date.day(),
        time.hour(),
        time.minute(),
        time.second()
    )
}

/// Parses a time from left to right.
struct Scanner<'a> {
    text: &'a str,
    layout: &'static str,
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    /// Consumes a number of exactly `digits` digits, the layout's `element`.
    fn number(&mut self, digits: usize, element: &str) -> Result<i16, String> {
        let number = self
            .rest
            .split_at_checked(digits)
            .filter(|_| self.digits_ahead() >= digits);
        let number = number.and_then(|(number, rest)| Some((i16::from_str(number).ok()?, rest)));
        let (number, rest) = number.ok_or_else(|| self.unparsable(element))?;
        self.rest = rest;
        Ok(number)
    }

    /// Consumes a number within a range.
    fn ranged(
        &mut self,
        digits: usize,
        element: &str,
        range: std::ops::RangeInclusive<i16>,
        name: &str,
    ) -> Result<i16, String> {
        let number = self.number(digits, element)?;
        if range.contains(&number) {
            return Ok(number);
        }
        Err(self.failure(&format!(": {name} out of range")))
    }

    /// Consumes a fixed text.
    fn literal(&mut self, literal: &str) -> Result<(), String> {
        self.rest = self
            .rest
            .strip_prefix(literal)
            .ok_or_else(|| self.unparsable(literal))?;
        Ok(())
    }

    /// Skips an optional fraction of a second.
    fn fraction(&mut self) {
        let is_digit = |character: char| character.is_ascii_digit();
        let fraction = self.rest.strip_prefix(['.', ',']);
        if let Some(fraction) = fraction.filter(|fraction| fraction.starts_with(is_digit)) {
            self.rest = fraction.trim_start_matches(is_digit);
        }
    }

    /// Consumes a dot, or a comma, and six digits; returns the digits.
    fn six_digits(&mut self) -> Result<&'a str, String> {
        let element = ".000000";
        let split = self.rest.split_at_checked(element.len());
        let (digits, rest) = split
            .and_then(|(fraction, rest)| Some((fraction.strip_prefix(['.', ','])?, rest)))
            .filter(|(digits, _)| digits.bytes().all(|digit| digit.is_ascii_digit()))
            .ok_or_else(|| self.unparsable(element))?;
        self.rest = rest;
        Ok(digits)
    }

    /// Consumes the offset from UTC, in seconds.
    fn zone(&mut self) -> Result<i64, String> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let whole = self.rest;
        let unparsable = |scanner: &Self| Scanner {
            text: scanner.text,
            layout: scanner.layout,
            rest: whole,
        };
        let (sign, offset) = match whole.split_at_checked(1) {
            Some(("+", offset)) => (1, offset),
            Some(("-", offset)) => (-1, offset),
            _ => return Err(self.unparsable("Z07:00")),
        };
        self.rest = offset;
        let element = "Z07:00";
        let read = |scanner: &mut Self| {
            let hours = scanner.ranged(2, element, 0..=24, "time zone offset hour")?;
            scanner
                .literal(":")
                .map_err(|_| unparsable(scanner).unparsable(element))?;
            let minutes = scanner.ranged(2, element, 0..=60, "time zone offset minute")?;
            Ok((i64::from(hours) * 60 + i64::from(minutes)) * 60 * sign)
        };
        read(self)
    }

    /// Number of digits at the current position.
    fn digits_ahead(&self) -> usize {
        self.rest.bytes().take_while(u8::is_ascii_digit).count()
    }

    fn unparsable(&self, element: &str) -> String {
        let (text, rest) = (go_quote(self.text), go_quote(self.rest));
        format!(
            "parsing time {text} as \"{}\": cannot parse {rest} as \"{element}\"",
            self.layout
        )
    }

    fn failure(&self, message: &str) -> String {
        format!("parsing time {}{message}", go_quote(self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multibyte_characters_are_not_digits() {
        for text in [
            "é026-01-01T00:00:00Z",
            "202é-01-01T00:00:00Z",
            "2026-01-01T00:00:00é",
            "2026-01-01T00:00:00.00000é00Z",
            "2026-01-01T00:00:00+é",
            "2026-01-01T00:00:00+0é:00",
        ] {
            assert!(canonical(text).is_err(), "{text}");
            assert!(canonical_micro(text).is_err(), "{text}");
        }
    }

    #[test]
    fn years_beyond_four_digits_print_like_go() {
        for (text, written) in [
            ("9999-12-31T23:59:59-12:00", "10000-01-01T11:59:59Z"),
            ("0000-01-01T00:00:00+01:00", "-0001-12-31T23:00:00Z"),
            ("0000-03-01T00:00:00Z", "0000-03-01T00:00:00Z"),
            ("2026-01-01T00:00:00+24:00", "2025-12-31T00:00:00Z"),
        ] {
            assert_eq!(canonical(text).unwrap().as_deref(), Some(written));
        }
        assert_eq!(canonical("0001-01-01T01:00:00+01:00"), Ok(None));
        let micro = canonical_micro("0001-01-01T00:00:00.000000Z");
        assert_eq!(micro, Ok(None));
        let micro = canonical_micro("0001-01-01T00:00:00.000001Z");
        assert_eq!(micro.unwrap().unwrap(), "0001-01-01T00:00:00.000001Z");
        let micro = canonical_micro("9999-12-31T23:59:59.000001-00:01");
        assert_eq!(micro.unwrap().unwrap(), "10000-01-01T00:00:59.000001Z");
    }
}
