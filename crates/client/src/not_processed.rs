//! Requests that the server has certainly not processed.

use std::error::Error as StdError;

use crate::causes::causes;

/// The server has not processed the request, so that any request, writes included, may be sent
/// again. For services that connect otherwise than this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server closed the connection before it processed the request")]
pub struct NotProcessed;

/// The body of a response ended early. Its headers show that the server has processed the request.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ResponseCut(#[source] pub(crate) Box<dyn StdError + Send + Sync>);

/// Returns true if the server certainly has not processed the request: the client had not begun to
/// send it, the server refused its stream, or the server's graceful GOAWAY names an earlier stream as
/// the last one.
///
/// h2 hides the number of that stream. But it ends only the later streams with the error of a remote
/// GOAWAY, and rejects new ones with it; earlier streams go on, or end with the connection's error.
/// One case is taken for processed although it isn't: a graceful GOAWAY while the request waits for
/// one of the connection's streams, since hyper drops the request without an error of h2.
pub(crate) fn is_not_processed(err: &(dyn StdError + 'static)) -> bool {
    let mut is_unprocessed = false;
    for cause in causes(err) {
        if cause.is::<ResponseCut>() {
            return false;
        }
        // hyper cancels only requests that it has not begun to send.
        let is_unsent = cause.downcast_ref().is_some_and(hyper::Error::is_canceled);
        let is_rejected = cause.downcast_ref::<h2::Error>().is_some_and(|err| {
            let is_graceful = err.is_go_away() && err.reason() == Some(h2::Reason::NO_ERROR);
            let is_refused = err.is_reset() && err.reason() == Some(h2::Reason::REFUSED_STREAM);
            err.is_remote() && (is_graceful || is_refused)
        });
        is_unprocessed |= cause.is::<NotProcessed>() || is_unsent || is_rejected;
    }
    is_unprocessed
}
