//! Requests for a path.

use std::time::Duration;

use http::Request;
use kube::Client;

/// The timeout of an existing cluster's responses.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Sends a GET request for a path.
pub(super) async fn ask(client: &Client, path: &str) -> kube::Result<String> {
    let request = Request::get(path).body(Vec::new());
    client
        .request_text(request.map_err(kube::Error::HttpError)?)
        .await
}
