//! Go-compatible parsing, validation and formatting.

mod address;
pub(crate) mod cron;
pub(crate) mod fmt;
pub(crate) mod ip;
pub(crate) mod json;
pub(crate) mod names;
pub(crate) mod pattern;
#[cfg_attr(
    not(any(feature = "cel", test)),
    expect(dead_code, reason = "rules alone read the parts of versions")
)]
pub(crate) mod semver;
pub(crate) mod strconv;
pub(crate) mod strfmt;
#[cfg_attr(
    not(any(feature = "cel", test)),
    expect(dead_code, reason = "rules alone read the parts of URLs")
)]
pub(crate) mod url;
pub(crate) mod wire;
