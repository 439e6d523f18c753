//! OpenAPI string formats.
//!
//! Upstream: `strfmt` of kube-openapi, without the formats that structural schemas ignore.

use std::net::Ipv6Addr;
use std::sync::OnceLock;

use kube_apimachinery::go_duration;
use regex::Regex;

use super::ip::{self, Cidr};
use super::names::{dns_label, dns_subdomain};
use super::{address, pattern, url};

/// Maximum length of a hostname, in bytes.
const HOSTNAME_MAX: usize = 255;

/// Maximum length of a part of a hostname, in bytes.
const LABEL_MAX: usize = 63;

/// Length of a social security number, in bytes.
const SSN_LENGTH: usize = 11;

/// A pattern that is compiled at its first use: some take milliseconds.
struct LazyPattern {
    source: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

impl LazyPattern {
    const fn new(source: &'static str) -> Self {
        let compiled = OnceLock::new();
        Self { source, compiled }
    }

    fn get(&self) -> Option<&Regex> {
        let compile = || pattern::compile(self.source).ok();
        self.compiled.get_or_init(compile).as_ref()
    }
}

/// Patterns by format.
static PATTERNS: [(&str, LazyPattern); 12] = [
    ("bsonobjectid", LazyPattern::new(r"^[0-9a-fA-F]{24}$")),
    (
        "byte",
        LazyPattern::new(
            r"^(?:[A-Za-z0-9+\/]{4})*(?:[A-Za-z0-9+\/]{2}==|[A-Za-z0-9+\/]{3}=|[A-Za-z0-9+\/]{4})$",
        ),
    ),
    (
        "creditcard",
        LazyPattern::new(
            r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$",
        ),
    ),
    (
        "hexcolor",
        LazyPattern::new(r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    ),
    (
        "hostname",
        LazyPattern::new(
            r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
        ),
    ),
    (
        "mac",
        LazyPattern::new(
            r"^([0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}((:[0-9a-fA-F]{2}){2}|(:[0-9a-fA-F]{2}){14})?|[0-9a-fA-F]{2}(-[0-9a-fA-F]{2}){5}((-[0-9a-fA-F]{2}){2}|(-[0-9a-fA-F]{2}){14})?|[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2}((\.[0-9a-fA-F]{4})|(\.[0-9a-fA-F]{4}){7})?)$",
        ),
    ),
    (
        "rgbcolor",
        LazyPattern::new(
            r"^rgb\(\s*(0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])\s*\)$",
        ),
    ),
    ("ssn", LazyPattern::new(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$")),
    (
        "uuid",
        LazyPattern::new(r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    ),
    (
        "uuid3",
        LazyPattern::new(
            r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$",
        ),
    ),
    (
        "uuid4",
        LazyPattern::new(
            r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$",
        ),
    ),
    (
        "uuid5",
        LazyPattern::new(
            r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$",
        ),
    ),
];

/// The time of a `datetime`, in lower case.
static TIME: LazyPattern =
    LazyPattern::new(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$");

/// A number with its unit, in a duration.
static AMOUNT: LazyPattern = LazyPattern::new(r"(\d+)\s*([A-Za-zµ]+)");

/// The names of the units of durations. A unit may continue the last name of each.
const UNITS: [&[&str]; 8] = [
    &["ns", "nano"],
    &["us", "µs", "micro"],
    &["ms", "milli"],
    &["s", "sec"],
    &["m", "min"],
    &["h", "hr", "hour"],
    &["d", "day"],
    &["w", "wk", "week"],
];

/// Returns true if a text has the format. An unknown format accepts any text.
pub(crate) fn matches(format: &str, text: &str) -> bool {
    match plain(format).as_str() {
        "" => true,
        "ipv4" => ip::parse_sloppy(text).is_some() && text.contains('.'),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => Cidr::parse(text).is_some(),
        "date" => is_date(text),
        "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "email" => address::is_address(text),
        "hostname" => {
            let has_short_parts = text.split('.').all(|part| part.len() <= LABEL_MAX);
            by_pattern("hostname", text) && text.len() <= HOSTNAME_MAX && has_short_parts
        }
        "isbn" => is_isbn(text, 10) || is_isbn(text, 13),
        "isbn10" => is_isbn(text, 10),
        "isbn13" => is_isbn(text, 13),
        "creditcard" => {
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            by_pattern("creditcard", &digits) && has_luhn_sum(&digits)
        }
        "ssn" => text.len() == SSN_LENGTH && by_pattern("ssn", text),
        "uri" => url::check_request(text).is_ok(),
        "k8sshortname" => dns_label(text).is_empty(),
        "k8slongname" => dns_subdomain(text).is_empty(),
        other => by_pattern(other, text),
    }
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

/// Upstream: `IsDateTime`
fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    let in_bounds = |part: Option<&str>, max: &str| part.is_some_and(|part| part <= max);
    is_date(date)
        && TIME.get().is_some_and(|pattern| pattern.is_match(time))
        && in_bounds(time.get(..2), "23")
        && in_bounds(time.get(3..5), "59")
        && in_bounds(time.get(6..8), "59")
}

/// Returns true for a duration as Go writes it, or for a text with a number and a unit anywhere.
///
/// Upstream: `ParseDuration`
fn is_duration(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if go_duration::parse(unsigned).is_some() {
        return true;
    }
    let mut has_unit = false;
    let amounts = AMOUNT.get().map(|pattern| pattern.captures_iter(text));
    for found in amounts.into_iter().flatten() {
        if found[1].parse::<i64>().is_err() {
            return false;
        }
        has_unit |= is_unit(&found[2].to_lowercase());
    }
    has_unit
}

fn is_unit(text: &str) -> bool {
    UNITS.iter().any(|names| {
        let last = names.last().is_some_and(|last| text.starts_with(last));
        last || names.contains(&text)
    })
}

/// Returns true if the server knows the format of values of this type.
pub(crate) fn is_known(of: &str, format: &str) -> bool {
    const OTHERS: [&str; 14] = [
        "cidr",
        "date",
        "datetime",
        "duration",
        "email",
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
    let pattern = found.and_then(|(_, pattern)| pattern.get());
    pattern.is_none_or(|pattern| pattern.is_match(text))
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
            ("date-time", "2024-01-01t10:00:00z", "2024-01-01T25:00:00Z"),
            ("date-time", "2024-01-01T23:59:59Z", "2024-01-01T10:00:60Z"),
            (
                "date-time",
                "2024-01-01T10:00:00,5Z",
                "2024-01-01T10:00:00+0200",
            ),
            ("byte", "YR==", ""),
            ("duration", "0", "P"),
            ("duration", "P1D", "5"),
            ("duration", "took 5s", "99999999999999999999s"),
            ("ipv4", "010.0.0.1", "1.2.3"),
            ("ipv4", "::ffff:1.2.3.4", "::ffff:102:304"),
            ("cidr", "010.0.0.0/8", "10.0.0.0/+8"),
            ("ssn", "123-45-6789", "123456789"),
            ("creditcard", "4111/1111/1111/1111", "9111111111111111"),
            ("hostname", "a.example", "a..b"),
            ("mac", "00-11-22-33-44-55", "00:11-22:33:44:55"),
        ] {
            assert!(matches(format, good), "{format} {good}");
            assert!(!matches(format, bad), "{format} {bad}");
        }
        assert!(!matches("hostname", &format!("{}.com", "a".repeat(64))));
        assert!(is_known("string", "email") && !is_known("string", "time"));
        assert!(TIME.get().is_some() && AMOUNT.get().is_some());
        assert!(matches("made-up", "anything"));
        assert!(is_known("string", "date-time") && !is_known("string", "made-up"));
        assert!(PATTERNS.iter().all(|(_, pattern)| pattern.get().is_some()));
    }
}
