//! Parsers of flag values. An error says what the value must be.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use kube_apimachinery::go_duration;

/// The kind of a switch.
pub(super) const BOOL: &str = "bool";
/// Kinds of lists that grow by another comma and what follows.
pub(super) const JOINED: [&str; 2] = ["strings", "mapStringBool"];
/// Kinds of which every value is kept.
pub(super) const REPEATED: [&str; 2] = ["namedCertKey", "stringToString"];

/// A path, or none if the flag is empty. An alias, so that clap doesn't take an empty value for a
/// flag that wasn't given.
pub(crate) type OptionalPath = Option<PathBuf>;
/// A list given in one value. An alias, so that clap doesn't take it for a value of each flag.
pub(crate) type Strings = Vec<String>;

/// Reads the spellings of a boolean that Go's flags accept.
pub(super) fn boolean(text: &str) -> Result<bool, &'static str> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("must be true or false"),
    }
}

/// Reads a number of 32 bits.
pub(super) fn int(text: &str) -> Result<i32, &'static str> {
    parse(text, "must be a whole number of 32 bits")
}

/// Reads a number of 32 bits that is not negative.
pub(super) fn unsigned(text: &str) -> Result<u32, &'static str> {
    parse(text, "must be a whole number of 32 bits, 0 or greater")
}

/// Reads a finite number.
pub(super) fn float(text: &str) -> Result<f64, &'static str> {
    let must = "must be a number";
    parse(text, must).and_then(|it: f64| if it.is_finite() { Ok(it) } else { Err(must) })
}

/// Reads a duration that is not negative.
pub(super) fn duration(text: &str) -> Result<Duration, &'static str> {
    go_duration::parse(text).ok_or("must be a duration of 0s or more, such as 12h or 1h30m")
}

/// Reads an address; nothing stands for all interfaces.
pub(super) fn ip(text: &str) -> Result<IpAddr, String> {
    if text.is_empty() {
        return Ok(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    }
    text.parse()
        .map_err(|_| format!("failed to parse IP: {text:?}"))
}

/// Reads a path.
#[expect(
    clippy::unnecessary_wraps,
    reason = "it stands among readers that can fail"
)]
pub(super) fn path(text: &str) -> Result<OptionalPath, &'static str> {
    Ok(Some(text)
        .filter(|text| !text.is_empty())
        .map(PathBuf::from))
}

/// Reads a list; nothing is the empty one.
#[expect(
    clippy::unnecessary_wraps,
    reason = "it stands among readers that can fail"
)]
pub(super) fn strings(text: &str) -> Result<Strings, &'static str> {
    Ok(split(text).map(str::to_owned).collect())
}

/// The entries of a list.
pub(super) fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').skip(usize::from(text.is_empty()))
}

fn parse<T: FromStr>(text: &str, must: &'static str) -> Result<T, &'static str> {
    text.parse().map_err(|_| must)
}
