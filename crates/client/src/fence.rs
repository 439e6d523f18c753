//! The fence: no write begins without a lease, and none of an ended term arrives in the next one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use tokio::sync::watch;
use tower::{BoxError, Layer, Service, ServiceExt as _};

use crate::clock::MonotonicClock;

/// How long the kernel tries to deliver bytes, unless the fence has another limit: what the
/// reference's times leave between the renew deadline and the end of the lease.
const TRANSIT_MAX_DEFAULT: Duration = Duration::from_secs(5);

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
/// [`Transport`] look once more, when they hand bytes to the system. They break with
/// [`Fence::close`], and the system drops what it has not delivered.
///
/// [`LeaderElector`]: crate::leaderelection::LeaderElector
/// [`Transport`]: crate::transport::Transport
#[derive(Clone)]
pub struct Fence {
    clock: Arc<dyn MonotonicClock>,
    transit_max: Duration,
    state: Arc<Mutex<State>>,
    /// How many terms have ended.
    ended: Arc<watch::Sender<u64>>,
}

#[derive(Default)]
struct State {
    /// By the clock; none while closed.
    deadline: Option<Duration>,
    /// Writes that wait for an answer.
    pending: usize,
    /// When a write last ended without an answer, or with a 5xx, by the clock.
    unanswered: Option<Duration>,
}

impl Fence {
    /// A closed fence that goes by this clock.
    pub fn new(clock: Arc<dyn MonotonicClock>) -> Self {
        Self {
            clock,
            transit_max: TRANSIT_MAX_DEFAULT,
            state: Arc::default(),
            ended: Arc::new(watch::Sender::new(0)),
        }
    }

    /// The same fence with another limit to the time for which the kernel tries to deliver what was
    /// written: at most what no rival has of the lease after the last deadline.
    #[must_use]
    pub fn with_transit_max(self, transit_max: Duration) -> Self {
        Self {
            transit_max,
            ..self
        }
    }

    /// How long the kernel tries to deliver what was written.
    pub fn transit_max(&self) -> Duration {
        self.transit_max
    }

    /// Fails if a write must not begin now.
    pub fn check(&self) -> Result<(), NotLeading> {
        self.check_state(&self.state())
    }

    /// Lets writes begin until the fence's clock shows `deadline`: for a renewal the clock's time
    /// *before* its request was sent, and as much of the lease as no rival can have before it is
    /// over.
    pub fn open_until(&self, deadline: Duration) {
        self.state().deadline = Some(deadline);
    }

    /// Lets no write begin from now on, and breaks the connections.
    pub fn close(&self) {
        let was_open = self.state().deadline.take().is_some();
        if was_open {
            self.ended.send_modify(|terms| *terms += 1);
        }
    }

    /// Whether nothing of this process can still be on its way: no write waits for an answer, and
    /// none ended without one, or with a 5xx, within this time.
    pub fn is_quiet_for(&self, time: Duration) -> bool {
        let state = self.state();
        let quiet_since = |given_up| self.clock.elapsed().saturating_sub(given_up);
        state.pending == 0 && state.unanswered.is_none_or(|it| quiet_since(it) >= time)
    }

    /// Ends when the fence is closed after it was open.
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

    /// Notes that a write begins, if it may.
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

/// A write that was sent. Dropped without an answer, or with a 5xx, it may still take effect.
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

/// The service that [`Fence`] makes: refuses every request but reads with [`NotLeading`] while the
/// fence is closed.
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
            // Nothing that takes time may come after the check.
            let inner = inner.ready().await?;
            if matches!(*request.method(), Method::GET | Method::HEAD) {
                return inner.call(request).await;
            }
            let pending = fence.begin()?;
            let response = inner.call(request).await?;
            // A server that failed may still be at it: its storage may have taken the write.
            if !response.status().is_server_error() {
                pending.answered();
            }
            Ok(response)
        })
    }
}
