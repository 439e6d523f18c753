//! A client that can't write, for programs that compare or observe.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use tower::{BoxError, Layer, Service};

/// A request other than a read was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not sent: this client only reads")]
pub struct OnlyReads;

/// Creates services that pass GET and HEAD, which include lists and watches, and reject every other
/// request with [`OnlyReads`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadOnlyLayer;

impl<S> Layer<S> for ReadOnlyLayer {
    type Service = ReadOnly<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ReadOnly { inner }
    }
}

/// The service of [`ReadOnlyLayer`].
#[derive(Clone)]
pub(crate) struct ReadOnly<S> {
    inner: S,
}

impl<S, A, B> Service<Request<A>> for ReadOnly<S>
where
    S: Service<Request<A>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
    B: 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            Box::pin(self.inner.call(request))
        } else {
            Box::pin(async { Err(OnlyReads.into()) })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tower::{ServiceExt as _, service_fn};

    use super::*;

    #[tokio::test]
    async fn only_reads_are_passed() {
        let passed = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&passed);
        let service = ReadOnlyLayer.layer(service_fn(move |_: Request<()>| {
            count.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, BoxError>(Response::new(())) }
        }));
        let send = |method: Method| {
            let request = Request::builder().method(method).body(()).unwrap();
            service.clone().oneshot(request)
        };
        for method in [
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
            Method::OPTIONS,
        ] {
            let error = send(method.clone()).await.unwrap_err();
            assert!(error.is::<OnlyReads>(), "{method}: {error}");
        }
        assert_eq!(passed.load(Ordering::Relaxed), 0);
        send(Method::GET).await.unwrap();
        send(Method::HEAD).await.unwrap();
        assert_eq!(passed.load(Ordering::Relaxed), 2);
    }
}
