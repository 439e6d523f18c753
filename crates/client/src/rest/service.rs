//! The service that sends requests, with the types of its layers hidden.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use kube::client::Body;
use tower::{BoxError, Service, ServiceExt as _, util::BoxCloneSyncService};

/// The body of any response.
pub type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// A service that sends requests in the task of the caller, unlike a
/// [`kube::Client`].
pub(crate) type RequestService = BoxCloneSyncService<Request<Body>, Response<AnswerBody>, BoxError>;

/// Hides the types of a service and of its responses' bodies.
pub(crate) fn boxed_service<S, B>(service: S) -> RequestService
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let boxed =
        |response: Response<B>| response.map(|body| body.map_err(Into::into).boxed_unsync());
    BoxCloneSyncService::new(service.map_response(boxed))
}

/// Returns a kube client as a service with the errors of its own service.
pub(crate) fn service_of(
    client: kube::Client,
) -> impl Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send>
+ Clone
+ Send
+ Sync {
    tower::service_fn(move |request| {
        let client = client.clone();
        async move {
            client.send(request).await.map_err(|err| match err {
                kube::Error::Service(source) => source,
                other => Box::new(other),
            })
        }
    })
}
