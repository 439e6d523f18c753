//! Requests for a path.

use std::time::Duration;

use http::Request;
use kube::Client;
use tokio::time::timeout;

use super::error::RequestError;

/// The timeout of an existing cluster's responses.
pub(super) const RESPONSE_MAX: Duration = Duration::from_secs(10);

/// Sends a GET request for a path.
pub(super) async fn ask(client: &Client, path: &str) -> kube::Result<String> {
    let request = Request::get(path).body(Vec::new());
    client
        .request_text(request.map_err(kube::Error::HttpError)?)
        .await
}

/// Sends a GET request for a path, and waits for its response for a limited time.
pub(super) async fn request_within(
    bound: Duration,
    client: &Client,
    path: &str,
) -> Result<(), RequestError> {
    match timeout(bound, ask(client, path)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(err)) => Err(RequestError::Failed(Box::new(err))),
        Err(_) => Err(RequestError::Timeout {
            path: path.to_owned(),
            timeout: bound,
        }),
    }
}
