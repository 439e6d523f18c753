//! What all artefacts of a release share.

use anyhow::Context as _;

/// One release.
#[derive(Clone, Debug)]
pub struct Release {
    /// The version, without a `v`.
    pub version: String,
    /// The commit's hash.
    pub commit: String,
    /// The commit's time, in seconds since 1970: the time of every file.
    pub seconds: u64,
    /// Address of the repository, without a trailing slash.
    pub source: String,
}

impl Release {
    /// The commit's time in the form of RFC 3339.
    ///
    /// # Errors
    /// The time lies beyond the year 9999.
    pub fn time(&self) -> anyhow::Result<String> {
        let seconds = i64::try_from(self.seconds).context("read the commit's time")?;
        let time = jiff::Timestamp::from_second(seconds).context("read the commit's time")?;
        Ok(time.to_string())
    }
}
