//! Texts as Go reads, checks and writes them.

pub(crate) mod format;
pub(crate) mod formats;
pub(crate) mod json;
pub(crate) mod names;
pub(crate) mod pattern;
#[cfg(feature = "cel")]
pub(crate) mod semver;
#[cfg_attr(
    not(any(feature = "cel", test)),
    expect(dead_code, reason = "rules alone read the parts of URLs")
)]
pub(crate) mod url;
