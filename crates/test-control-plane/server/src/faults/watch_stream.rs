//! A watch stream with its rules applied to each line.

use std::collections::VecDeque;
use std::future::pending;

use bytes::Bytes;
use futures::stream;
use http_body_util::BodyExt;
use kube_test_control_plane_api::kinds::Verb;
use kube_test_control_plane_api::query::Query;
use kube_test_control_plane_store::clock::later;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::applied::{Applied, Ending};
use super::engine::Faults;
use super::facts::RequestFacts;
use super::lines::{Line, Splitter};
use super::watches::Seen;
use crate::reply::{BoxError, Reply, ResponseBody, streamed};

/// A rule broke the connection of a watch.
#[derive(Debug, thiserror::Error)]
#[error("the connection was dropped")]
struct ConnectionCut;

/// A line that waits to be sent.
struct Queued {
    line: Line,
    /// The earliest time to send it.
    due: Instant,
    /// True for initial events of a watch that requested them.
    initial: bool,
}

/// A watch stream to the client.
struct WatchStream {
    inner: ResponseBody,
    inner_ended: bool,
    facts: RequestFacts,
    faults: Faults,
    seen: Seen,
    changed: Receiver<u64>,
    connection: CancellationToken,
    splitter: Splitter,
    queue: VecDeque<Queued>,
    /// Due time of the newest line; later lines are never sent earlier.
    last_due: Option<Instant>,
    applied: Vec<Applied>,
    /// True while lines may belong to the initial events.
    initial: bool,
    ending: Option<Ending>,
    ended: bool,
}

/// The next step.
enum Step {
    Send(Bytes),
    Again,
    Wait(Option<Instant>),
}

/// Applies the watch rules to a watch's response, which breaks with its connection. Other responses
/// stay unchanged.
pub(crate) fn follow(
    faults: &Faults,
    facts: &RequestFacts,
    connection: CancellationToken,
    reply: Reply,
) -> Reply {
    if facts.verb != Some(Verb::Watch) || !reply.status().is_success() {
        return reply;
    }
    let (parts, inner) = reply.into_parts();
    let mut changed = faults.watch_changes();
    changed.mark_changed();
    let stream = WatchStream {
        inner,
        inner_ended: false,
        facts: facts.clone(),
        seen: faults.begin_watch(facts),
        faults: faults.clone(),
        changed,
        connection,
        splitter: Splitter::default(),
        queue: VecDeque::new(),
        last_due: None,
        applied: Vec::new(),
        initial: Query::parse(&facts.query).flag("sendInitialEvents"),
        ending: None,
        ended: false,
    };
    let lines = stream::unfold(stream, |mut stream| async move {
        let next = stream.next().await?;
        Some((next, stream))
    });
    streamed(parts, lines)
}

impl Drop for WatchStream {
    fn drop(&mut self) {
        self.faults.end_watch(&self.seen);
    }
}

impl WatchStream {
    async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            if self.changed.has_changed().unwrap_or(false) {
                self.changed.mark_unchanged();
                self.faults
                    .refresh_watch(&mut self.seen, &self.facts, &mut self.applied);
            }
            let step = self.step();
            match self.ending.take() {
                None => {}
                Some(Ending::Close) => self.ended = true,
                Some(Ending::Cut) => {
                    self.ended = true;
                    return Some(Err(Box::new(ConnectionCut)));
                }
                Some(Ending::Error(line)) => {
                    self.ended = true;
                    return Some(Ok(line));
                }
            }
            if let Step::Send(chunk) = step {
                return Some(Ok(chunk));
            }
            if self.ended {
                return None;
            }
            if let Step::Wait(until) = step
                && let Some(result) = self.wait(until).await
            {
                return Some(result);
            }
        }
    }

    /// Waits until `until` or for input. Returns a chunk that passes unchanged.
    async fn wait(&mut self, until: Option<Instant>) -> Option<Result<Bytes, BoxError>> {
        let is_clear = self.applied.is_empty() && self.queue.is_empty() && self.splitter.is_empty();
        let timer = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.connection.cancelled() => self.ending = Some(Ending::Cut),
            Ok(()) = self.changed.changed() => self.changed.mark_changed(),
            frame = self.inner.frame(), if !self.inner_ended => match frame {
                None => self.inner_ended = true,
                Some(Err(err)) => {
                    self.ended = true;
                    return Some(Err(err));
                }
                Some(Ok(frame)) => {
                    let chunk = frame.into_data().unwrap_or_default();
                    if is_clear {
                        self.splitter.passed(&chunk);
                        return Some(Ok(chunk));
                    }
                    self.enqueue(&chunk);
                }
            },
            () = timer => {}
        }
        None
    }

    fn enqueue(&mut self, chunk: &[u8]) {
        self.splitter.push(chunk);
        while let Some(line) = self.splitter.next() {
            let initial = self.initial;
            self.initial &= !line.ends_initial_events();
            let due = self.draw_due();
            self.queue.push_back(Queued { line, due, initial });
        }
    }

    /// Draws the due time of a line that just arrived.
    fn draw_due(&mut self) -> Instant {
        let now = Instant::now();
        let drawn = self.applied.iter_mut().map(|a| later(now, a.delay())).max();
        let due = drawn.into_iter().chain(self.last_due).max().unwrap_or(now);
        self.last_due = Some(due);
        due
    }

    /// Decides the next step.
    fn step(&mut self) -> Step {
        let now = Instant::now();
        self.applied.retain(|applied| !applied.is_over(now));
        if self.ended || self.ending.is_some() {
            return Step::Again;
        }
        let head = self.queue.front();
        if let Some(i) = self.due_rule(head.map(|queued| &queued.line)) {
            self.ending = self.applied[i].begin(&self.facts);
            return Step::Again;
        }
        let Some(head) = head else {
            return self.step_without_lines(now);
        };
        let behind = self.queue.len() - 1;
        if self.applied.iter().any(|a| a.holds(behind, head.initial)) {
            // A watch of a stale view ends without the events that the view lacks.
            self.ended = self.inner_ended;
            return Step::Wait(self.next_end());
        }
        if head.due > now {
            return Step::Wait(Some(head.due).into_iter().chain(self.next_end()).min());
        }
        self.deliver()
    }

    fn due_rule(&self, next: Option<&Line>) -> Option<usize> {
        self.applied.iter().position(|a| a.is_due(next))
    }

    fn step_without_lines(&mut self, now: Instant) -> Step {
        if !self.inner_ended {
            return Step::Wait(self.next_end());
        }
        let rest = self.splitter.rest();
        if !rest.is_empty() {
            return Step::Send(rest);
        }
        if let Some(due) = self.last_due.filter(|due| *due > now) {
            Step::Wait(Some(due))
        } else {
            self.ended = true;
            Step::Again
        }
    }

    /// Sends the first line with the rules applied.
    fn deliver(&mut self) -> Step {
        let Some(Queued { line, .. }) = self.queue.pop_front() else {
            return Step::Again;
        };
        if self.applied.iter().any(|a| a.drops(&line)) {
            return Step::Again;
        }
        if !line.is_event() {
            return Step::Send(line.text);
        }
        let mut text = line.text;
        for applied in &mut self.applied {
            self.ended |= applied.change(&mut text);
        }
        for applied in &mut self.applied {
            applied.count_event();
        }
        if text.is_empty() {
            return Step::Again;
        }
        Step::Send(text)
    }

    /// Returns the time at which the next rule expires.
    fn next_end(&self) -> Option<Instant> {
        self.applied.iter().filter_map(Applied::ends).min()
    }
}
