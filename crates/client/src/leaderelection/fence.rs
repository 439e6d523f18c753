//! No write begins without a lease.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Method, Request};
use tower::{BoxError, Layer, Service, ServiceExt as _};

use crate::clock::MonotonicClock;

/// A write was not sent, for this process holds no lease, or the time for which it was last renewed
/// is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not sent: this process doesn't hold the lease any more")]
pub struct NotLeading;

/// Lets writes pass while the lease allows them. Closed until a [`LeaderElector`] leads, and again
/// when the renew deadline has passed since the start of its last successful renewal, whether the
/// elector has noticed or not. Clones are the same fence.
///
/// An election of another kind makes a fence of its own ([`Fence::new`]) and opens it anew with
/// each renewal.
///
/// As a [`Layer`] it belongs right around what sends: below waits for rate limits and below
/// retries, so that a request which had to wait is looked at again. The connections of this crate's
/// [`Transport`] look once more, when they hand bytes to the system.
///
/// [`LeaderElector`]: super::LeaderElector
/// [`Transport`]: crate::transport::Transport
#[derive(Clone)]
pub struct Fence {
    clock: Arc<dyn MonotonicClock>,
    /// By the clock; none while closed.
    deadline: Arc<Mutex<Option<Duration>>>,
}

impl Fence {
    /// A closed fence that goes by this clock.
    pub fn new(clock: Arc<dyn MonotonicClock>) -> Self {
        Self {
            clock,
            deadline: Arc::default(),
        }
    }

    /// Fails if a write must not begin now.
    pub fn check(&self) -> Result<(), NotLeading> {
        let deadline = *self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
        match deadline {
            Some(deadline) if self.clock.elapsed() < deadline => Ok(()),
            _ => Err(NotLeading),
        }
    }

    /// Lets writes begin until the fence's clock shows `deadline`: for a renewal the clock's time
    /// *before* its request was sent, and as much of the lease as no rival can have before it is
    /// over.
    pub fn open_until(&self, deadline: Duration) {
        self.set(Some(deadline));
    }

    /// Lets no write begin from now on.
    pub fn close(&self) {
        self.set(None);
    }

    fn set(&self, deadline: Option<Duration>) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
    }
}

impl<S> Layer<S> for Fence {
    type Service = Fenced<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Fenced {
            inner,
            fence: self.clone(),
        }
    }
}

/// The service that [`Fence`] makes: refuses every request but reads with [`NotLeading`] while the
/// fence is closed.
#[derive(Clone)]
pub struct Fenced<S> {
    inner: S,
    fence: Fence,
}

impl<S, B> Service<Request<B>> for Fenced<S>
where
    S: Service<Request<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
    S::Response: Send,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { mut inner, fence } = self.clone();
        Box::pin(async move {
            // Nothing that takes time may come after the check.
            let inner = inner.ready().await?;
            if !matches!(*request.method(), Method::GET | Method::HEAD) {
                fence.check()?;
            }
            inner.call(request).await
        })
    }
}
