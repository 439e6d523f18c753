//! The fence: a process without the lease starts no writes, and a term's writes end with it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use tokio::sync::watch;
use tower::{BoxError, Layer, Service, ServiceExt as _};

use crate::clock::MonotonicClock;
use crate::not_processed::is_not_processed;

/// Default time that the kernel may take to deliver written bytes. It is upstream's lease
/// duration minus its renew deadline.
const TRANSIT_MAX_DEFAULT: Duration = Duration::from_secs(5);

/// A write was not sent because this process doesn't hold the lease, or didn't renew it in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not sent: this process no longer holds the lease")]
pub struct NotLeading;

/// Allows writes while this process holds the lease. It is closed until a [`LeaderElector`]
/// acquires the lease. It closes again when the renew deadline has passed since the start of the
/// last successful renewal, even if the elector hasn't noticed. Clones share one fence.
///
/// Another kind of election creates its own fence ([`Fence::new`]) and extends it with each
/// renewal.
///
/// As a [`Layer`] it wraps the sender directly: inside the layers for rate limits and retries, so
/// that a delayed request is checked again. The connections of this crate's [`Transport`] check
/// once more before they hand bytes to the kernel. [`Fence::close`] breaks them, and the kernel
/// drops undelivered bytes.
///
/// [`LeaderElector`]: crate::leaderelection::LeaderElector
/// [`Transport`]: crate::transport::Transport
#[derive(Clone)]
pub struct Fence {
    clock: Arc<dyn MonotonicClock>,
    transit_max: Duration,
    state: Arc<Mutex<State>>,
    /// Number of ended terms.
    ended: Arc<watch::Sender<u64>>,
}

#[derive(Default)]
struct State {
    /// Clock time at which the fence closes; none while closed.
    deadline: Option<Duration>,
    /// Number of writes waiting for a response.
    pending: usize,
    /// Clock time at which a write last ended with a 5xx, or without a response although the server
    /// may have processed it.
    unanswered: Option<Duration>,
}

impl Fence {
    /// Creates a closed fence that uses this clock.
    pub fn new(clock: Arc<dyn MonotonicClock>) -> Self {
        Self {
            clock,
            transit_max: TRANSIT_MAX_DEFAULT,
            state: Arc::default(),
            ended: Arc::new(watch::Sender::new(0)),
        }
    }

    /// Changes the time that the kernel may take to deliver written bytes. It must not exceed the
    /// time between the last deadline and the end of the lease.
    #[must_use]
    pub fn with_transit_max(self, transit_max: Duration) -> Self {
        Self {
            transit_max,
            ..self
        }
    }

    /// Returns the time that the kernel may take to deliver written bytes.
    pub fn transit_max(&self) -> Duration {
        self.transit_max
    }

    /// Fails if writes aren't allowed now.
    pub fn check(&self) -> Result<(), NotLeading> {
        self.check_state(&self.state())
    }

    /// Allows writes until the fence's clock reaches `deadline`. A renewal's deadline is the clock
    /// time *before* its request was sent, plus a time that ends before a rival can take the lease.
    pub fn open_until(&self, deadline: Duration) {
        self.state().deadline = Some(deadline);
    }

    /// Blocks writes from now on, and breaks the connections.
    pub fn close(&self) {
        let was_open = self.state().deadline.take().is_some();
        if was_open {
            self.ended.send_modify(|terms| *terms += 1);
        }
    }

    /// Returns true if no write of this process can still take effect: none waits for a response,
    /// and none ended without one, or with a 5xx, within this time.
    pub fn is_quiet_for(&self, time: Duration) -> bool {
        let state = self.state();
        let quiet_since = |given_up| self.clock.elapsed().saturating_sub(given_up);
        state.pending == 0 && state.unanswered.is_none_or(|it| quiet_since(it) >= time)
    }

    /// Completes when the fence closes after it was open.
    pub(crate) fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut terms = self.ended.subscribe();
        let sender = Arc::clone(&self.ended);
        async move {
            // The sender lives as long as this future.
            let _ = terms.changed().await;
            drop(sender);
        }
    }

    fn check_state(&self, state: &State) -> Result<(), NotLeading> {
        match state.deadline {
            Some(deadline) if self.clock.elapsed() < deadline => Ok(()),
            _ => Err(NotLeading),
        }
    }

    /// Starts a write, if allowed.
    fn begin(&self) -> Result<Pending, NotLeading> {
        let mut state = self.state();
        self.check_state(&state)?;
        state.pending += 1;
        drop(state);
        Ok(Pending {
            fence: self.clone(),
            is_answered: false,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write in flight. If it is dropped without a response, or with a 5xx, it may still take effect.
struct Pending {
    fence: Fence,
    is_answered: bool,
}

impl Pending {
    fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let now = self.fence.clock.elapsed();
        let mut state = self.fence.state();
        state.pending = state.pending.saturating_sub(1);
        if !self.is_answered {
            state.unanswered = Some(now);
        }
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

/// The service that [`Fence`] creates: while the fence is closed, it rejects every request except
/// reads with [`NotLeading`].
#[derive(Clone)]
pub struct Fenced<S> {
    inner: S,
    fence: Fence,
}

impl<S, A, B> Service<Request<A>> for Fenced<S>
where
    S: Service<Request<A>, Response = Response<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
    A: Send + 'static,
    B: Send,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let Self { mut inner, fence } = self.clone();
        Box::pin(async move {
            // Nothing slow may follow the check.
            let inner = inner.ready().await?;
            if matches!(*request.method(), Method::GET | Method::HEAD) {
                return inner.call(request).await;
            }
            let pending = fence.begin()?;
            let result = inner.call(request).await;
            // A failed server may still be working: its storage may have accepted the write.
            let is_over = match &result {
                Ok(response) => !response.status().is_server_error(),
                Err(err) => is_not_processed(err.as_ref()),
            };
            if is_over {
                pending.answered();
            }
            result
        })
    }
}
