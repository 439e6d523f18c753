//! OpenAPI string formats.
//!
//! Upstream: `strfmt` of kube-openapi, without the formats that structural schemas ignore.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;

use super::names::{dns_label, dns_subdomain};
use super::{pattern, url};

/// Patterns by format.
static PATTERNS: LazyLock<Vec<(&'static str, Regex)>> = LazyLock::new(|| {
    let sources = [
        ("bsonobjectid", r"^[0-9a-fA-F]{24}$"),
        ("creditcard", r"^[0-9]{13,19}$"),
        ("hexcolor", r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
        (
            "hostname",
            r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
        ),
        (
            "mac",
            r"^([0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}(([:-][0-9a-fA-F]{2}){2}|([:-][0-9a-fA-F]{2}){14})?|[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2}((\.[0-9a-fA-F]{4})|(\.[0-9a-fA-F]{4}){7})?)$",
        ),
        (
            "rgbcolor",
            r"^rgb\(\s*(0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])\s*\)$",
        ),
        ("ssn", r"^\d{3}[- ]?\d{2}[- ]?\d{4}$"),
        (
            "uuid",
            r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$",
        ),
        (
            "uuid3",
            r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$",
        ),
        (
            "uuid4",
            r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$",
        ),
        (
            "uuid5",
            r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$",
        ),
        ("email", r"^[^\s@<>,]+@[^\s@<>,]+$"),
        (
            "datetime",
            r"(?i)^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:?\d{2})$",
        ),
        (
            "duration",
            r"^(\s*[+-]?\d+(\.\d+)?\s*(ns|nano|nanos|nanosecond|nanoseconds|us|µs|micro|micros|microsecond|microseconds|ms|milli|millis|millisecond|milliseconds|s|sec|secs|second|seconds|m|min|mins|minute|minutes|h|hr|hrs|hour|hours|d|day|days|w|wk|wks|week|weeks))+$",
        ),
    ];
    sources
        .into_iter()
        .filter_map(|(format, source)| Some((format, pattern::compile(source).ok()?)))
        .collect()
});

/// Returns true if a text has the format. An unknown format accepts any text.
pub(crate) fn matches(format: &str, text: &str) -> bool {
    match plain(format).as_str() {
        "" => true,
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "byte" => STANDARD.decode(text).is_ok(),
        "date" => text.len() == 10 && is_date(Some(text)),
        "datetime" => by_pattern("datetime", text) && is_date(text.get(..10)),
        "isbn" => is_isbn(text, 10) || is_isbn(text, 13),
        "isbn10" => is_isbn(text, 10),
        "isbn13" => is_isbn(text, 13),
        "creditcard" => {
            let digits: String = text.chars().filter(|c| !matches!(c, ' ' | '-')).collect();
            by_pattern("creditcard", &digits) && has_luhn_sum(&digits)
        }
        "uri" => url::check_request(text).is_ok(),
        "k8sshortname" => dns_label(text).is_empty(),
        "k8slongname" => dns_subdomain(text).is_empty(),
        other => by_pattern(other, text),
    }
}

fn is_date(text: Option<&str>) -> bool {
    text.is_some_and(|text| text.parse::<jiff::civil::Date>().is_ok())
}

/// Returns true if the server knows the format of values of this type.
pub(crate) fn is_known(of: &str, format: &str) -> bool {
    const OTHERS: [&str; 12] = [
        "byte",
        "cidr",
        "date",
        "ipv4",
        "ipv6",
        "isbn",
        "isbn10",
        "isbn13",
        "k8slongname",
        "k8sshortname",
        "password",
        "uri",
    ];
    let format = plain(format);
    let format = format.as_str();
    match of {
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        "" | "string" => {
            OTHERS.contains(&format) || PATTERNS.iter().any(|(known, _)| *known == format)
        }
        _ => false,
    }
}

/// Returns the name of a format without dashes, which upstream ignores.
fn plain(format: &str) -> String {
    format.replace('-', "")
}

fn by_pattern(format: &str, text: &str) -> bool {
    let found = PATTERNS.iter().find(|(known, _)| *known == format);
    found.is_none_or(|(_, pattern)| pattern.is_match(text))
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let is_up_to = |max: u8| length.parse::<u8>().is_ok_and(|length| length <= max);
    address.parse::<Ipv4Addr>().is_ok() && is_up_to(32)
        || address.parse::<Ipv6Addr>().is_ok() && is_up_to(128)
}

fn is_isbn(text: &str, length: usize) -> bool {
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| !matches!(c, '-' | ' '))
        .enumerate()
        .map_while(|(at, c)| match c {
            'X' if length == 10 && at == 9 => Some(10),
            other => other.to_digit(10),
        })
        .collect();
    let bare = text.chars().filter(|c| !matches!(c, '-' | ' ')).count();
    if digits.len() != length || bare != length {
        return false;
    }
    if length == 10 {
        let weights = (1..=10).rev();
        return weights
            .zip(&digits)
            .map(|(w, d): (u32, _)| w * d)
            .sum::<u32>()
            .is_multiple_of(11);
    }
    let weights = [1, 3].into_iter().cycle();
    weights
        .zip(&digits)
        .map(|(w, d): (u32, _)| w * d)
        .sum::<u32>()
        .is_multiple_of(10)
}

fn has_luhn_sum(digits: &str) -> bool {
    let sum: u32 = digits
        .chars()
        .rev()
        .filter_map(|c| c.to_digit(10))
        .enumerate()
        .map(|(at, digit)| match (at % 2, digit * 2) {
            (0, _) => digit,
            (_, twice) if twice > 9 => twice - 9,
            (_, twice) => twice,
        })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_accept_only_matching_strings() {
        for (format, good, bad) in [
            ("date-time", "2024-01-01T00:00:00.5+02:00", "2024-01-01"),
            ("date", "2024-01-01", "2024-13-01"),
            ("ipv4", "1.2.3.4", "::1"),
            ("ipv6", "::1", "1.2.3.4"),
            ("cidr", "10.0.0.0/8", "10.0.0.0"),
            ("byte", "aGVsbG8=", "!!!"),
            ("email", "a@b.c", "nope"),
            ("hostname", "a", "a.b-c"),
            ("uuid4", "c9c0ecbc-5b3d-4b0c-8f3e-0d6f5c6a7b8c", "zzz"),
            ("duration", "1 day", "zzz"),
            ("mac", "00:11:22:33:44:55", "zz"),
            ("uri", "https://a.example/x", "a b"),
            ("isbn", "0-306-40615-2", "1"),
            ("creditcard", "4111 1111 1111 1111", "4111111111111112"),
            ("rgbcolor", "rgb(1,2,3)", "rgb"),
        ] {
            assert!(matches(format, good), "{format} {good}");
            assert!(!matches(format, bad), "{format} {bad}");
        }
        assert!(matches("made-up", "anything"));
        assert!(is_known("string", "date-time") && !is_known("string", "made-up"));
        assert_eq!(PATTERNS.len(), 14);
    }
}
