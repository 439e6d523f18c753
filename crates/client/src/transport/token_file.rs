//! A bearer token in a file that another program renews, as the kubelet does for pods.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use http::header::InvalidHeaderValue;
use tokio::time::Instant;

use crate::fault_log::FaultLog;

/// Interval between two reads of the file. Upstream: `cachedFileTokenSource`.
const REREAD_INTERVAL: Duration = Duration::from_secs(50);

/// A file's token, as a header value.
///
/// If the file becomes unreadable, the last token stays in use.
#[derive(Debug)]
pub(super) struct TokenFile {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    header: HeaderValue,
    read_at: Instant,
    expired: bool,
    failure: FaultLog,
}

/// The reason that a file has no token.
#[derive(Debug, thiserror::Error)]
pub(super) enum TokenFileError {
    #[error("cannot read the token file {}: {source}", .path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the token file {} is empty", .0.display())]
    Empty(PathBuf),
    #[error("the token file {} contains no token: {source}", .path.display())]
    Invalid {
        path: PathBuf,
        #[source]
        source: InvalidHeaderValue,
    },
}

impl TokenFile {
    /// Reads the file for the first time.
    pub(super) fn open(path: impl Into<PathBuf>) -> Result<Self, TokenFileError> {
        let path = path.into();
        let state = State {
            header: read(&path)?,
            read_at: Instant::now(),
            expired: false,
            failure: FaultLog::default(),
        };
        Ok(Self {
            path,
            state: Mutex::new(state),
        })
    }

    /// Returns the token, after rereading the file if it may have changed.
    pub(super) fn header(&self) -> HeaderValue {
        let mut state = self.state();
        if state.expired || state.read_at.elapsed() >= REREAD_INTERVAL {
            (state.read_at, state.expired) = (Instant::now(), false);
            match read(&self.path) {
                Ok(header) => {
                    state.header = header;
                    if state.failure.end().is_some() {
                        tracing::info!(path = %self.path.display(), "token can be read again");
                    }
                }
                Err(error) => {
                    if state.failure.begin(()) {
                        tracing::warn!(%error, "keeping the previous token");
                    }
                }
            }
        }
        state.header.clone()
    }

    /// Records that the server rejected this token: the next request rereads the file.
    pub(super) fn expire(&self, header: &HeaderValue) {
        let mut state = self.state();
        if state.header == header {
            state.expired = true;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &PathBuf) -> Result<HeaderValue, TokenFileError> {
    let text = std::fs::read_to_string(path).map_err(|source| TokenFileError::Read {
        path: path.clone(),
        source,
    })?;
    let token = text.trim();
    if token.is_empty() {
        return Err(TokenFileError::Empty(path.clone()));
    }
    let header = HeaderValue::try_from(format!("Bearer {token}"));
    let mut header = header.map_err(|source| TokenFileError::Invalid {
        path: path.clone(),
        source,
    })?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn token_is_reread_periodically_or_after_rejection() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "one\n").unwrap();
        let file = TokenFile::open(&path).unwrap();
        std::fs::write(&path, "two\n").unwrap();
        assert_eq!(file.header(), "Bearer one");
        tokio::time::advance(REREAD_INTERVAL).await;
        assert_eq!(file.header(), "Bearer two");

        std::fs::write(&path, "three").unwrap();
        file.expire(&HeaderValue::from_static("Bearer one"));
        assert_eq!(file.header(), "Bearer two", "another token was rejected");
        file.expire(&HeaderValue::from_static("Bearer two"));
        assert_eq!(file.header(), "Bearer three");
    }

    #[tokio::test(start_paused = true)]
    async fn missing_file_keeps_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "one").unwrap();
        let file = TokenFile::open(&path).unwrap();
        for text in [None, Some("\n")] {
            match text {
                None => std::fs::remove_file(&path).unwrap(),
                Some(text) => std::fs::write(&path, text).unwrap(),
            }
            tokio::time::advance(REREAD_INTERVAL).await;
            assert_eq!(file.header(), "Bearer one");
        }
        let error = TokenFile::open(&path).unwrap_err().to_string();
        assert!(error.ends_with("/token is empty"), "{error}");
    }
}
