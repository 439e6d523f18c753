//! The log of one run of a container.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use jiff::{SignedDuration, Timestamp};
use kube_test_control_plane_server::containers::LogOptions;
use tokio::sync::watch;

use crate::server::ActorServer;

/// Limit of lines; the oldest are dropped, as by a rotation.
const LINES_MAX: usize = 10_000;

/// A line, without its line feed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    at: Timestamp,
    text: String,
}

#[derive(Debug, Default)]
struct State {
    /// Ordered by time, including scripted lines of the future.
    lines: Vec<Line>,
    /// Number of lines dropped from the front.
    dropped: usize,
    ended_at: Option<Timestamp>,
}

/// The log of one run of a container.
#[derive(Debug)]
pub(super) struct ContainerLog {
    state: Mutex<State>,
    /// Changes with every change of the log.
    version: watch::Sender<u64>,
}

impl ContainerLog {
    /// Begins a log with scripted lines, each with its time.
    pub(super) fn new(script: impl IntoIterator<Item = (Timestamp, String)>) -> Self {
        let mut lines: Vec<Line> = script
            .into_iter()
            .take(LINES_MAX)
            .map(|(at, text)| Line { at, text })
            .collect();
        lines.sort_by_key(|line| line.at);
        let state = State {
            lines,
            ..State::default()
        };
        Self {
            state: Mutex::new(state),
            version: watch::Sender::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds lines now.
    pub(super) fn append(&self, now: Timestamp, text: &str) {
        let mut state = self.state();
        for text in text.lines() {
            let at = state.lines.partition_point(|line| line.at <= now);
            let text = text.to_owned();
            state.lines.insert(at, Line { at: now, text });
        }
        let extra = state.lines.len().saturating_sub(LINES_MAX);
        state.lines.drain(..extra);
        state.dropped += extra;
        drop(state);
        self.version.send_modify(|version| *version += 1);
    }

    /// Ends the log with all its scripted lines.
    pub(super) fn complete(&self, now: Timestamp) {
        for line in &mut self.state().lines {
            line.at = line.at.min(now);
        }
        self.end(now);
    }

    /// Ends the log: later scripted lines are never written.
    pub(super) fn end(&self, now: Timestamp) {
        let mut state = self.state();
        if state.ended_at.is_none() {
            state.ended_at = Some(now);
            state.lines.retain(|line| line.at <= now);
            drop(state);
            self.version.send_modify(|version| *version += 1);
        }
    }

    /// Returns once the run has ended.
    pub(super) async fn ended(&self) {
        let mut version = self.version.subscribe();
        while self.state().ended_at.is_none() {
            if version.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns the number of the first line to read.
    fn start(&self, options: &LogOptions, now: Timestamp) -> usize {
        let state = self.state();
        let written = state.lines.partition_point(|line| line.at <= now);
        let recent = |since| state.lines.partition_point(|line| line.at < since);
        let first = options.since.map_or(0, recent).min(written);
        let tail = options
            .tail
            .map(|tail| usize::try_from(tail).unwrap_or(usize::MAX));
        let last = tail.map_or(0, |tail| written.saturating_sub(tail));
        state.dropped + first.max(last)
    }

    /// Returns the written lines from a number on, the number after them, and the continuation.
    fn read(&self, from: usize, now: Timestamp) -> (Vec<Line>, usize, Continuation) {
        let state = self.state();
        let from = from.max(state.dropped) - state.dropped;
        let written = state.lines.partition_point(|line| line.at <= now).max(from);
        let lines = state.lines.get(from..written).unwrap_or_default().to_vec();
        let continuation = match state.lines.get(written) {
            _ if state.ended_at.is_some() => Continuation::End,
            None => Continuation::Open,
            Some(next) => Continuation::Next(now.duration_until(next.at)),
        };
        (lines, state.dropped + written, continuation)
    }
}

/// Continuation of a log after its written lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Continuation {
    /// Nothing follows.
    End,
    /// The next scripted line follows after this time.
    Next(SignedDuration),
    /// Others may write.
    Open,
}

/// A reader of a log.
struct Reader {
    log: std::sync::Arc<ContainerLog>,
    server: ActorServer,
    options: LogOptions,
    next: usize,
    left: Option<u64>,
    version: watch::Receiver<u64>,
    is_over: bool,
}

/// Returns the lines of a log as the options select them.
pub(super) fn read(
    log: &std::sync::Arc<ContainerLog>,
    server: &ActorServer,
    options: &LogOptions,
) -> BoxStream<'static, Bytes> {
    let reader = Reader {
        log: std::sync::Arc::clone(log),
        server: server.clone(),
        options: options.clone(),
        next: log.start(options, server.now()),
        left: options.limit_bytes,
        version: log.version.subscribe(),
        is_over: false,
    };
    let pieces = stream::unfold(reader, |mut reader| async move {
        let piece = reader.next_piece().await?;
        Some((piece, reader))
    });
    pieces.boxed()
}

impl Reader {
    async fn next_piece(&mut self) -> Option<Bytes> {
        while !self.is_over {
            self.version.mark_unchanged();
            let (lines, next, continuation) = self.log.read(self.next, self.server.now());
            self.next = next;
            self.is_over = continuation == Continuation::End || !self.options.follow;
            if let Some(piece) = self.format(&lines) {
                return Some(piece);
            }
            if self.is_over {
                break;
            }
            let pause = match continuation {
                Continuation::Next(time) => Duration::try_from(time).unwrap_or_default(),
                _ => Duration::MAX,
            };
            let stopping = self.server.stopping();
            tokio::select! {
                biased;
                () = stopping.cancelled() => return None,
                changed = self.version.changed() => changed.ok()?,
                () = tokio::time::sleep(pause), if pause != Duration::MAX => {}
            }
        }
        None
    }

    fn format(&mut self, lines: &[Line]) -> Option<Bytes> {
        let mut text = String::new();
        for line in lines {
            if self.options.timestamps {
                text.push_str(&line.at.strftime("%Y-%m-%dT%H:%M:%S.%9fZ ").to_string());
            }
            text.push_str(&line.text);
            text.push('\n');
        }
        let mut bytes = Bytes::from(text);
        if let Some(left) = &mut self.left {
            bytes.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= bytes.len() as u64;
            self.is_over |= *left == 0;
        }
        (!bytes.is_empty()).then_some(bytes)
    }
}
