//! A server with one lease and scripted faults, and candidates for that lease.

use std::collections::VecDeque;
use std::io::{Error as IoError, ErrorKind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, service_fn};

use super::super::*;
use crate::backoff::NoJitter;
use crate::clock::{Clock, MonotonicClock, TokioClock};
use crate::config::{ClientOptions, layered};
use crate::recorder::FakeRecorder;
use crate::rest::RestClient;

/// Wall-clock time at which tests begin.
const BEGIN: &str = "2026-01-02T03:04:05.678901Z";

/// The fate of one request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// The request succeeds.
    Nothing,
    /// The request fails with a code.
    Refuse(u16),
    /// The request fails, with a `Retry-After` of this many seconds.
    Postpone(u16),
    /// The request succeeds, but the connection is lost before the response.
    LoseResponse,
    /// The connection is lost immediately.
    Lose,
    /// The server never responds.
    Hang,
}

/// A server with one lease. Clones share it.
#[derive(Clone)]
pub(super) struct Server(Arc<Mutex<State>>);

struct State {
    start: Instant,
    lease: Option<Value>,
    version: u64,
    faults: VecDeque<Fault>,
    /// The fault of every request after the scripted ones.
    afterwards: Fault,
    log: Vec<String>,
}

impl Server {
    /// Creates a server without a lease.
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            start: Instant::now(),
            lease: None,
            version: 1,
            faults: VecDeque::new(),
            afterwards: Fault::Nothing,
            log: Vec::new(),
        })))
    }

    /// Creates a server with a lease of this spec.
    pub(super) fn with(spec: impl Into<Value>) -> Self {
        let server = Self::new();
        server.write(json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "lock", "namespace": "kube-system", "uid": "u"}, "spec": spec.into(),
        }));
        server
    }

    /// Sets the faults of the next requests, in order; later requests succeed.
    pub(super) fn fail(&self, faults: &[Fault]) {
        self.0.lock().unwrap().faults = faults.iter().copied().collect();
    }

    /// Sets the fault of every request from now on.
    pub(super) fn fail_always(&self, fault: Fault) {
        self.0.lock().unwrap().afterwards = fault;
    }

    /// Stores a lease, as another client.
    pub(super) fn write(&self, lease: Value) {
        self.0.lock().unwrap().store(lease);
    }

    /// Changes the lease, as another client.
    pub(super) fn change(&self, change: impl FnOnce(&mut Value)) {
        let mut lease = self.lease();
        change(&mut lease);
        self.write(lease);
    }

    /// Deletes the lease, as another client.
    pub(super) fn remove(&self) {
        self.0.lock().unwrap().lease = None;
    }

    pub(super) fn lease(&self) -> Value {
        self.0.lock().unwrap().lease.clone().expect("a lease")
    }

    /// Returns a field of the lease's spec.
    pub(super) fn spec(&self, member: &str) -> Value {
        self.lease()["spec"][member].clone()
    }

    /// Returns the requests since the last call: seconds, method, holder of a write, and code.
    pub(super) fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().log)
    }

    /// Returns a client without a rate limit.
    pub(super) fn client(&self, options: ClientOptions) -> RestClient {
        let server = self.clone();
        let service = service_fn(move |request| {
            let server = server.clone();
            async move {
                let answer = server.answer(request).await;
                // Other candidates run while the response is on its way.
                tokio::task::yield_now().await;
                answer
            }
        });
        let options = ClientOptions {
            qps: 0.0,
            ..options
        };
        layered(service, &options)
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let (fault, answer) = {
            let mut state = self.0.lock().unwrap();
            let fault = state.faults.pop_front().unwrap_or(state.afterwards);
            let (code, answer) = match fault {
                Fault::Nothing | Fault::LoseResponse => state.carry_out(&parts.method, &body),
                Fault::Refuse(code) => (code, failure(code)),
                Fault::Postpone(_) => (503, failure(503)),
                Fault::Lose | Fault::Hang => (0, Value::Null),
            };
            let seconds = state.start.elapsed().as_secs_f64();
            let holder = body.pointer("/spec/holderIdentity").and_then(Value::as_str);
            let holder = holder.map_or_else(String::new, |holder| format!(" {holder}"));
            let line = format!("{seconds} {}{holder} {code}", parts.method);
            state.log.push(line);
            (fault, (code, answer))
        };
        match fault {
            Fault::Hang => std::future::pending().await,
            Fault::Lose | Fault::LoseResponse => {
                Err(IoError::from(ErrorKind::ConnectionReset).into())
            }
            Fault::Nothing | Fault::Refuse(_) | Fault::Postpone(_) => {
                let mut response = Response::builder().status(answer.0);
                if let Fault::Postpone(seconds) = fault {
                    response = response.header("retry-after", seconds);
                }
                Ok(response.body(answer.1.to_string().into_bytes().into())?)
            }
        }
    }
}

impl State {
    fn store(&mut self, mut lease: Value) -> Value {
        self.version += 1;
        lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.lease = Some(lease.clone());
        lease
    }

    fn carry_out(&mut self, method: &Method, body: &Value) -> (u16, Value) {
        match (method, &self.lease) {
            (&Method::GET, Some(lease)) => (200, lease.clone()),
            (&Method::GET | &Method::PUT, None) => (404, failure(404)),
            (&Method::POST, Some(_)) => (409, failure(409)),
            (&Method::POST, None) => (201, self.store(body.clone())),
            (&Method::PUT, Some(lease)) => {
                let version = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
                if version(lease) == version(body) {
                    (200, self.store(body.clone()))
                } else {
                    (409, failure(409))
                }
            }
            _ => (200, Value::Null),
        }
    }
}

fn failure(code: u16) -> Value {
    json!({"kind": "Status", "status": "Failure", "code": code, "reason": "", "message": "no"})
}

/// A wall clock that follows tokio's clock.
pub(super) struct WallClock(pub(super) Timestamp, TokioClock);

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        self.0.saturating_add(self.1.elapsed()).unwrap()
    }
}

/// Tokio's clock plus the time that the machine was suspended.
#[derive(Default)]
pub(super) struct SleepyClock {
    tokio: TokioClock,
    slept: Mutex<Duration>,
}

impl SleepyClock {
    pub(super) fn sleep(&self, duration: Duration) {
        *self.slept.lock().unwrap() += duration;
    }
}

impl MonotonicClock for SleepyClock {
    fn elapsed(&self) -> Duration {
        self.tokio.elapsed() + *self.slept.lock().unwrap()
    }
}

/// Records metrics and events.
#[derive(Default)]
pub(super) struct RecordedMetrics(Mutex<Vec<String>>);

impl LeaderElectionMetrics for RecordedMetrics {
    fn master_status(&self, name: &str, leads: bool) {
        self.0.lock().unwrap().push(format!("{name} {leads}"));
    }

    fn slowpath_exercised(&self, name: &str) {
        self.0.lock().unwrap().push(format!("{name} slow"));
    }
}

impl RecordedMetrics {
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A candidate and its dependencies.
pub(super) struct Candidate {
    pub(super) elector: LeaderElector,
    pub(super) events: Arc<FakeRecorder>,
    pub(super) metrics: Arc<RecordedMetrics>,
    pub(super) machine: Arc<SleepyClock>,
}

impl Candidate {
    pub(super) fn new(server: &Server, identity: &str) -> Self {
        Self::with(server, identity, LeaderElectionConfig::default(), BEGIN)
    }

    /// Creates a candidate with another wall clock.
    pub(super) fn with(
        server: &Server,
        identity: &str,
        config: LeaderElectionConfig,
        wall_clock: &str,
    ) -> Self {
        let (events, metrics) = (
            Arc::new(FakeRecorder::new()),
            Arc::new(RecordedMetrics::default()),
        );
        let machine = Arc::new(SleepyClock::default());
        let clock = WallClock(wall_clock.parse().unwrap(), TokioClock::new());
        let parts = ElectorParts {
            lock: lock(server, identity, Arc::clone(&events)),
            clock: Arc::new(clock),
            monotonic: Arc::<SleepyClock>::clone(&machine),
            metrics: Arc::<RecordedMetrics>::clone(&metrics),
            ..Self::parts(server, identity)
        };
        let elector = LeaderElector::new(config, parts).unwrap();
        Self {
            elector,
            events,
            metrics,
            machine,
        }
    }

    /// Returns the dependencies of a candidate.
    pub(super) fn parts(server: &Server, identity: &str) -> ElectorParts {
        ElectorParts {
            lock: lock(server, identity, Arc::new(FakeRecorder::new())),
            clock: Arc::new(WallClock(BEGIN.parse().unwrap(), TokioClock::new())),
            monotonic: Arc::new(TokioClock::new()),
            jitter: Arc::new(NoJitter),
            metrics: Arc::new(NoopLeaderElectionMetrics),
        }
    }

    /// Runs the candidate for `seconds` and then drops it, as a crash would.
    pub(super) async fn run_for(self, seconds: f64) -> Option<Ended<()>> {
        let cancelled = CancellationToken::new();
        let run = self.elector.run(&cancelled, never());
        let ended = tokio::time::timeout(Duration::from_secs_f64(seconds), run).await;
        ended.ok()
    }
}

/// Work that never ends.
pub(super) async fn never() {
    std::future::pending::<()>().await;
}

fn lock(server: &Server, identity: &str, events: Arc<FakeRecorder>) -> LeaseLock {
    let at = LeaseName {
        namespace: "kube-system".to_owned(),
        name: "lock".to_owned(),
    };
    let client = server.client(ClientOptions::default());
    LeaseLock::new(client, at, identity.to_owned(), events)
}
