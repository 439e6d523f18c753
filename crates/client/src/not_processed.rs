//! Requests that the server has certainly not processed.

use std::error::Error as StdError;

use crate::causes::causes;

/// The server has not processed the request, so that any request, writes included, may be sent
/// again. For services that connect otherwise than this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server closed the connection before it processed the request")]
pub struct NotProcessed;

/// Returns true if the server certainly has not processed the request: it refused the stream, or its
/// graceful GOAWAY names an earlier stream as the last one.
///
/// h2 hides the number of that stream. But it ends only the later streams with the error of a remote
/// GOAWAY, and rejects new ones with it; earlier streams go on, or end with the connection's error.
pub(crate) fn is_not_processed(err: &(dyn StdError + 'static)) -> bool {
    causes(err).any(|cause| {
        if cause.is::<NotProcessed>() {
            return true;
        }
        cause.downcast_ref::<h2::Error>().is_some_and(|err| {
            let is_graceful = err.is_go_away() && err.reason() == Some(h2::Reason::NO_ERROR);
            let is_refused = err.is_reset() && err.reason() == Some(h2::Reason::REFUSED_STREAM);
            err.is_remote() && (is_graceful || is_refused)
        })
    })
}
