//! Parsers of flag values. Their errors state the requirement, such as "must be a number".

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use kube_apimachinery::go_duration;

/// Type name of boolean flags.
pub(super) const BOOL: &str = "bool";
/// Types whose repeated values are joined by commas.
pub(super) const JOINED: [&str; 2] = ["strings", "mapStringBool"];
/// Types that keep every repeated value.
pub(super) const REPEATED: [&str; 2] = ["namedCertKey", "stringToString"];

/// An optional path; an empty value is `None`. An alias, so that clap can tell an empty value from
/// a missing flag.
pub(crate) type OptionalPath = Option<PathBuf>;
/// A comma-separated list. An alias, so that clap doesn't take it for a repeated flag.
pub(crate) type Strings = Vec<String>;

/// Parses the spellings of a boolean that Go's flags accept.
pub(super) fn boolean(text: &str) -> Result<bool, &'static str> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("must be true or false"),
    }
}

/// Parses a 32-bit integer.
pub(super) fn int(text: &str) -> Result<i32, &'static str> {
    parse(text, "must be a 32-bit integer")
}

/// Parses an unsigned 32-bit integer.
pub(super) fn unsigned(text: &str) -> Result<u32, &'static str> {
    parse(text, "must be an unsigned 32-bit integer")
}

/// Parses a finite number.
pub(super) fn float(text: &str) -> Result<f64, &'static str> {
    let must = "must be a number";
    parse(text, must).and_then(|it: f64| if it.is_finite() { Ok(it) } else { Err(must) })
}

/// Parses a non-negative duration.
pub(super) fn duration(text: &str) -> Result<Duration, &'static str> {
    go_duration::parse(text).ok_or("must be a duration of 0s or more, such as 12h or 1h30m")
}

/// Parses an IP address; an empty value is all interfaces.
pub(super) fn ip(text: &str) -> Result<IpAddr, String> {
    if text.is_empty() {
        return Ok(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    }
    text.parse()
        .map_err(|_| format!("failed to parse IP: {text:?}"))
}

/// Parses a path.
#[expect(
    clippy::unnecessary_wraps,
    reason = "value parsers share one signature"
)]
pub(super) fn path(text: &str) -> Result<OptionalPath, &'static str> {
    Ok(Some(text)
        .filter(|text| !text.is_empty())
        .map(PathBuf::from))
}

/// Parses a list; an empty value is the empty list.
#[expect(
    clippy::unnecessary_wraps,
    reason = "value parsers share one signature"
)]
pub(super) fn strings(text: &str) -> Result<Strings, &'static str> {
    Ok(split(text).map(str::to_owned).collect())
}

/// Entries of a list.
pub(super) fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').skip(usize::from(text.is_empty()))
}

fn parse<T: FromStr>(text: &str, must: &'static str) -> Result<T, &'static str> {
    text.parse().map_err(|_| must)
}
