//! The network between the instances and the API server: latency, and the faults of requests.

mod faults;
mod fenced;
mod rejected;

use std::task::{Context, Poll};
use std::time::Duration;

use http::header::USER_AGENT;
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use kube::client::Body;
use kube_test_control_plane::auth::ServiceAs;
use kube_test_control_plane::faults::RequestFacts;
use kube_test_control_plane::reply::{BoxError, Reply};
use kube_test_control_plane::route::Verb;
use statefulset_client::error::NotProcessed;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;
use tower::Service;

use crate::agent::{Agent, Process};
use crate::record::Recorder;
pub use faults::{Ending, Fate, Faults};
pub use fenced::{Fenced, Writer};
use rejected::rejected;

/// An event that the run must react to.
#[derive(Debug)]
pub enum Signal {
    /// A fault kills this process.
    Crash(Process),
    /// A fault cuts this process off for a time.
    Isolate(Process, Duration),
    /// A fault stops this process for a time.
    Suspend(Process, Duration),
    /// The process ended by itself, for this reason.
    Ended(Process, String),
}

/// The network of one process.
#[derive(Clone)]
pub struct Network {
    /// The API server, with only the default role.
    pub server: ServiceAs,
    /// The API server for the lease, which the default role doesn't allow.
    pub leases: ServiceAs,
    /// The process.
    pub process: Process,
    /// The faults of the run.
    pub faults: Faults,
    /// The record of the run.
    pub recorder: Recorder,
    /// Receives crashes.
    pub signals: mpsc::UnboundedSender<Signal>,
    /// The API server of the process, in a run with a fence.
    pub fenced: Option<Fenced>,
}

/// The connection broke.
#[derive(Debug, thiserror::Error)]
#[error("connection reset by peer")]
struct Reset;

impl Network {
    async fn carry(self, request: Request<Body>) -> Result<Reply, BoxError> {
        let (mut parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let uri = &parts.uri;
        let facts = RequestFacts::new(&parts.method, uri.path(), uri.query().unwrap_or_default());
        if let Some(fenced) = &self.fenced
            && let Some(reply) = fenced.respond(&facts, &body)
        {
            return self.answer_probe(reply).await;
        }
        if let Some(fenced) = &self.fenced {
            parts.uri = fenced.named(&parts.uri, &facts)?;
        }
        let (id, nth_write) = self.recorder.sent(self.process, &facts, &body);
        let fate = self.faults.decide(self.process.instance, &facts, nth_write);
        let agent = Agent {
            process: self.process,
            request: id,
        };
        let mut request = Request::from_parts(parts, Full::new(body));
        let agent = HeaderValue::from_str(&agent.to_string())?;
        request.headers_mut().insert(USER_AGENT, agent);
        if fate.ending == Ending::CrashBefore {
            return self.crash().await;
        }
        // A process that is stopped sends nothing. Its timers go on here, so their requests fail
        // once it goes on.
        if self.faults.is_suspended(self.process.instance) {
            self.faults.resumed(self.process.instance).await;
            return Err(Reset.into());
        }
        if let Some(time) = fate.isolate {
            self.faults.isolate(self.process.instance, time);
            // The run that receives the signal outlives its processes.
            let _ = self.signals.send(Signal::Isolate(self.process, time));
        }
        self.faults.reachable(self.process.instance).await;
        if fate.ending == Ending::Drop {
            sleep(fate.there).await;
            return Err(Reset.into());
        }
        if fate.ending == Ending::LeaveUnprocessed {
            sleep(fate.there + fate.back).await;
            // A sender that has given up by now doesn't know.
            self.recorder.left_unprocessed(id);
            return Err(NotProcessed.into());
        }
        if let Some(error) = fate.error {
            sleep(fate.there + fate.back).await;
            self.recorder.answered(id, error.code());
            return rejected(&error, &facts);
        }
        // The API server processes the request even if its sender is gone by then.
        let (sender, answer) = oneshot::channel();
        let mut server = match facts.resource.as_str() {
            "leases" => self.leases.clone(),
            _ => self.server.clone(),
        };
        let there = fate.there;
        let (fenced, facts) = (self.fenced.clone(), facts.clone());
        let recorder = self.recorder.clone();
        #[expect(
            clippy::disallowed_methods,
            reason = "the request outlives its sender, and ends by itself"
        )]
        tokio::spawn(async move {
            sleep(there).await;
            let denial = fenced.and_then(|fenced| fenced.denial(&facts));
            let reply = match denial {
                Some(policy) => {
                    recorder.denied(id, policy);
                    fenced::denied(policy, &facts)
                }
                None => server.call(request).await.map_err(Into::into),
            };
            if denial.is_none() && reply.as_ref().is_ok_and(|it| refuses_growth(&facts, it)) {
                recorder.refused_growth(id);
            }
            // A dropped receiver is a sender that is gone.
            let _ = sender.send(reply);
        });
        let reply = answer.await.map_err(|_| Reset)?;
        if fate.ending == Ending::CrashAfter {
            return self.crash().await;
        }
        if fate.ending == Ending::LoseResponse {
            return Err(Reset.into());
        }
        sleep(fate.back).await;
        if let Some(time) = fate.suspend {
            self.faults.suspend(self.process.instance, time);
            // The run that receives the signal outlives its processes.
            let _ = self.signals.send(Signal::Suspend(self.process, time));
        }
        self.faults.reachable(self.process.instance).await;
        let reply = reply?;
        self.recorder.answered(id, reply.status().as_u16());
        Ok(reply)
    }

    /// Returns the response to a probe, which no fault hits alone.
    async fn answer_probe(&self, reply: Result<Reply, BoxError>) -> Result<Reply, BoxError> {
        if self.faults.is_suspended(self.process.instance) {
            self.faults.resumed(self.process.instance).await;
            return Err(Reset.into());
        }
        self.faults.reachable(self.process.instance).await;
        reply
    }

    /// Kills the process: this request never ends.
    async fn crash(&self) -> Result<Reply, BoxError> {
        // The run that receives the signal outlives its processes.
        let _ = self.signals.send(Signal::Crash(self.process));
        std::future::pending().await
    }
}

impl Service<Request<Body>> for Network {
    type Response = Reply;
    type Error = BoxError;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Reply, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().carry(request))
    }
}

/// Reports whether a storage class forbids a claim to grow: no other rule of the API server refuses the
/// update of a claim.
fn refuses_growth(facts: &RequestFacts, reply: &Reply) -> bool {
    facts.resource == "persistentvolumeclaims"
        && facts.verb == Some(Verb::Update)
        && reply.status() == StatusCode::FORBIDDEN
}
