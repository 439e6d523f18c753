//! Kubernetes times: RFC 3339 in UTC, whole seconds (`Time`) or microseconds (`MicroTime`).

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Parses an RFC 3339 time of any offset and precision.
///
/// # Errors
///
/// The text is not an RFC 3339 time.
pub fn parse(text: &str) -> Result<Timestamp, jiff::Error> {
    text.parse()
}

/// Parses a time from an API server. Times within Go's range but beyond this clock's saturate; an
/// invalid time, and the zero time, are `None`.
pub fn parse_saturating(text: &str) -> Option<Timestamp> {
    if let Ok(time) = parse(text) {
        return (text != ZERO_TIME).then_some(time);
    }
    let (year, _) = text.trim_start_matches('-').split_once('-')?;
    if year.is_empty() || !year.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match (text.starts_with('-'), year.len()) {
        (true, _) => Some(Timestamp::MIN),
        (false, 5..) => Some(Timestamp::MAX),
        // Time zones put the last hours of year 9999 beyond the clock's range.
        (false, _) if year == "9999" => Some(Timestamp::MAX),
        (false, _) => None,
    }
}

/// The zero time, which means unset.
const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// Formats a time as Kubernetes' `Time`: UTC, whole seconds (truncated), `Z`.
///
/// Upstream: `metav1.Time.MarshalJSON`.
pub fn format_seconds(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC)
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}

/// Formats a time as Kubernetes' `MicroTime`: UTC, exactly six fraction digits, `Z`.
///
/// Upstream: `metav1.MicroTime.MarshalJSON`.
pub fn format_micros(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC)
        .strftime("%Y-%m-%dT%H:%M:%S.%6fZ")
        .to_string()
}

/// Formats a time like Go's `time.Time.String()` for a UTC time read from JSON, which some messages
/// contain: `2026-03-01 11:59:50 +0000 UTC`.
pub fn format_go(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC)
        .strftime("%Y-%m-%d %H:%M:%S%.f +0000 UTC")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_out_of_range_saturate() {
        for (text, time) in [
            ("2026-03-01T11:59:50Z", parse("2026-03-01T11:59:50Z").ok()),
            ("10000-01-01T11:59:59Z", Some(Timestamp::MAX)),
            ("9999-12-31T23:59:59Z", Some(Timestamp::MAX)),
            ("-0001-12-31T23:00:00Z", Some(Timestamp::MIN)),
            ("0001-01-01T00:00:00Z", None),
            ("", None),
            ("soon", None),
            ("99-soon", None),
        ] {
            assert_eq!(parse_saturating(text), time, "{text}");
        }
    }

    #[test]
    fn first_and_last_time_print() {
        for (time, year) in [(Timestamp::MIN, "-9999-"), (Timestamp::MAX, "9999-")] {
            for text in [format_seconds(time), format_micros(time), format_go(time)] {
                assert!(text.starts_with(year), "{text}");
            }
        }
    }

    #[test]
    fn times_print_in_utc_with_their_precision() {
        let time = parse("2026-03-01T13:00:00.123456789+01:00").unwrap();
        assert_eq!(format_seconds(time), "2026-03-01T12:00:00Z");
        assert_eq!(format_micros(time), "2026-03-01T12:00:00.123456Z");
        assert_eq!(format_go(time), "2026-03-01 12:00:00.123456789 +0000 UTC");
        let whole = parse("2026-03-01T11:59:50Z").unwrap();
        assert_eq!(format_go(whole), "2026-03-01 11:59:50 +0000 UTC");
    }
}
