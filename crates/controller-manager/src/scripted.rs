//! Scripted API server for tests.

use std::sync::Arc;

use http::{Request, Response, Uri};
use http_body_util::BodyExt as _;
use kube::client::Body;
use statefulset_client::config::{ClientOptions, layered};
use statefulset_client::rest::RestClient;
use tower::{BoxError, service_fn};

/// Response to a request path: a code and a body, or the reason for no response.
pub(crate) type Said = Result<(u16, String), &'static str>;

/// Client of a server whose script maps a path to a response.
pub(crate) fn client(script: impl Fn(&str) -> Said + Send + Sync + 'static) -> RestClient {
    asked_client(move |path, _| script(path))
}

/// Client of a server whose script maps a path and a body to a response.
pub(crate) fn asked_client(
    script: impl Fn(&str, &str) -> Said + Send + Sync + 'static,
) -> RestClient {
    client_of(move |uri, body| script(uri.path(), body))
}

/// Client of a server whose script maps a URI and a body to a response.
pub(crate) fn client_of(script: impl Fn(&Uri, &str) -> Said + Send + Sync + 'static) -> RestClient {
    let script = Arc::new(script);
    let service = service_fn(move |request: Request<Body>| {
        let script = Arc::clone(&script);
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let answer = script(&parts.uri, &String::from_utf8_lossy(&body));
            let (code, body) = answer.map_err(BoxError::from)?;
            let response = Response::builder()
                .status(code)
                .body(Body::from(body.into_bytes()));
            Ok::<_, BoxError>(response?)
        }
    });
    layered(service, &ClientOptions::default())
}

/// An error response in the form of API servers.
pub(crate) fn failure(code: u16, reason: &str, message: &str) -> (u16, String) {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code, "reason": reason, "message": message,
    });
    (code, status.to_string())
}
