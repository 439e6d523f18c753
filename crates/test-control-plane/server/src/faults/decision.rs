//! The decision of the rules on one request, and its execution.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http_body_util::BodyExt;
use rand::rngs::StdRng;
use tokio::time::sleep;

use super::facts::RequestFacts;
use super::gate::{GatePoint, GateState};
use super::rule::{FaultAction, FaultRule};
use crate::reply::{self, BoxError, Reply};

/// The decision of the rules on one request.
#[derive(Debug, Default)]
pub(crate) struct FaultDecision {
    pub(super) gates: Vec<Arc<GateState>>,
    delay: Duration,
    delay_answer: Duration,
    slow_body: Option<(u32, Duration)>,
    /// The action that ended the evaluation.
    end: Option<FaultAction>,
    names: Vec<String>,
}

/// Reason why a client gets no response.
#[derive(Debug)]
pub(crate) enum Interrupted<E> {
    /// A rule drops the connection.
    Dropped,
    /// The request failed.
    Failed(E),
}

impl FaultDecision {
    /// Reports whether no further rule is evaluated.
    pub(super) fn is_decided(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn add(&mut self, rule: &FaultRule, random: &mut StdRng) {
        self.names.push(if rule.name.is_empty() {
            rule.action.name().to_owned()
        } else {
            rule.name.clone()
        });
        match &rule.action {
            FaultAction::Delay(delay) => self.delay += delay.draw(random),
            FaultAction::DelayAnswer(delay) => self.delay_answer += delay.draw(random),
            FaultAction::SlowBody { piece_bytes, pause } => {
                self.slow_body = Some(((*piece_bytes).max(1), pause.draw(random)));
            }
            last => self.end = Some(last.clone()),
        }
    }

    /// Returns the names of the applied rules, separated by commas; may be empty.
    pub(crate) fn names(&self) -> String {
        self.names.join(",")
    }

    /// Returns the status code of an unprocessed request, which is 0 without a response; `None` if
    /// the request is processed.
    pub(crate) fn code_without_handling(&self) -> Option<u16> {
        match &self.end {
            Some(FaultAction::Respond(error)) => Some(error.code()),
            Some(FaultAction::DropBeforeCommit) => Some(0),
            _ => None,
        }
    }

    /// Processes a request according to the rules.
    pub(crate) async fn carry_out<E>(
        self,
        facts: &RequestFacts,
        apply: impl Future<Output = Result<Reply, E>>,
    ) -> Result<Reply, Interrupted<E>> {
        if !self.delay.is_zero() {
            sleep(self.delay).await;
        }
        self.pass_gates(GatePoint::BeforeCommit, facts).await;
        match &self.end {
            Some(FaultAction::Respond(error)) => return Ok(error.reply(facts)),
            Some(FaultAction::DropBeforeCommit) => return Err(Interrupted::Dropped),
            _ => {}
        }
        let reply = apply.await.map_err(Interrupted::Failed)?;
        self.pass_gates(GatePoint::AfterCommit, facts).await;
        if !self.delay_answer.is_zero() {
            sleep(self.delay_answer).await;
        }
        match (&self.end, self.slow_body) {
            (Some(FaultAction::CommitThenDrop), _) => Err(Interrupted::Dropped),
            (Some(FaultAction::CommitThenRespond(error)), _) => Ok(error.reply(facts)),
            (_, Some((bytes, pause))) => Ok(in_pieces(reply, bytes, pause)),
            _ => Ok(reply),
        }
    }

    async fn pass_gates(&self, point: GatePoint, facts: &RequestFacts) {
        for gate in self.gates.iter().filter(|gate| gate.point() == point) {
            gate.pass(facts).await;
        }
    }
}

/// Splits a response body into pieces, each after a pause.
fn in_pieces(reply: Reply, bytes: u32, pause: Duration) -> Reply {
    let size = usize::try_from(bytes).unwrap_or(usize::MAX);
    let (parts, body) = reply.into_parts();
    let pieces = stream::unfold(
        (body, Bytes::new()),
        move |(mut body, mut rest)| async move {
            while rest.is_empty() {
                match body.frame().await? {
                    Ok(frame) => rest = frame.into_data().unwrap_or_default(),
                    Err(err) => return Some((Err::<Bytes, BoxError>(err), (body, rest))),
                }
            }
            sleep(pause).await;
            let piece = rest.split_to(size.min(rest.len()));
            Some((Ok(piece), (body, rest)))
        },
    );
    reply::streamed(parts, pieces)
}
