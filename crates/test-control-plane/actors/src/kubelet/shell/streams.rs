//! The streams of a session: those of a client, or captured text.

use std::collections::VecDeque;
use std::time::Duration;

use kube_test_control_plane_server::containers::TerminalSize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::watch;
use tokio::time::Instant;

/// Length of a read in bytes.
const READ_MAX: usize = 8 * 1024;

/// A source of input.
#[derive(Debug)]
pub(in super::super) enum Input {
    Empty,
    Live(BufReader<DuplexStream>),
    Text(VecDeque<u8>),
}

impl Input {
    pub(super) fn text(bytes: Vec<u8>) -> Self {
        Self::Text(bytes.into())
    }

    /// Reads some bytes; none at the end.
    async fn read(&mut self) -> Vec<u8> {
        match self {
            Self::Empty => Vec::new(),
            Self::Text(bytes) => std::mem::take(bytes).into(),
            Self::Live(reader) => {
                let mut bytes = vec![0; READ_MAX];
                let read = reader.read(&mut bytes).await.unwrap_or(0);
                bytes.truncate(read);
                bytes
            }
        }
    }

    /// Reads up to a line feed or the end.
    async fn read_line(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        match self {
            Self::Empty => {}
            Self::Text(bytes) => {
                let end = bytes.iter().position(|byte| *byte == b'\n');
                line.extend(bytes.drain(..end.map_or(bytes.len(), |end| end + 1)));
            }
            Self::Live(reader) => {
                reader.read_until(b'\n', &mut line).await.unwrap_or(0);
            }
        }
        (!line.is_empty()).then_some(line)
    }
}

/// A destination of output.
#[derive(Debug)]
pub(in super::super) enum Sink {
    Null,
    /// Standard error merged into standard output.
    Merged,
    Live(DuplexStream),
    Captured(Vec<u8>),
    /// Text with the virtual time at which it was written.
    Timed(Vec<(Duration, Vec<u8>)>),
}

impl Sink {
    pub(super) fn captured() -> Self {
        Self::Captured(Vec::new())
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Captured(bytes) => bytes,
            Self::Timed(parts) => parts.into_iter().flat_map(|(_, bytes)| bytes).collect(),
            Self::Null | Self::Merged | Self::Live(_) => Vec::new(),
        }
    }
}

/// Time source for pauses.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Pause {
    /// Tokio's time.
    Real,
    /// The time that has passed, and its limit.
    Virtual(Duration, Duration),
}

/// The stream that receives standard output, and the one that receives errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Routes {
    out_to_err: bool,
    err_to_out: bool,
}

/// The streams of a session.
#[derive(Debug)]
pub(in super::super) struct Streams {
    /// The innermost last.
    inputs: Vec<Input>,
    out: Sink,
    err: Sink,
    routes: Routes,
    pause: Pause,
    began: Instant,
    terminal: Option<watch::Receiver<TerminalSize>>,
}

impl Streams {
    pub(in super::super) fn new(
        input: Input,
        out: Sink,
        err: Sink,
        pause: Pause,
        terminal: Option<watch::Receiver<TerminalSize>>,
    ) -> Self {
        Self {
            inputs: vec![input],
            out,
            err,
            routes: Routes {
                out_to_err: false,
                err_to_out: false,
            },
            pause,
            began: Instant::now(),
            terminal,
        }
    }

    /// Returns the time since the beginning of the session.
    pub(super) fn passed(&self) -> Duration {
        match self.pause {
            Pause::Real => self.began.elapsed(),
            Pause::Virtual(passed, _) => passed,
        }
    }

    /// Returns the text written in virtual time, and the time that has passed.
    pub(in super::super) fn into_timed(self) -> (Vec<(Duration, Vec<u8>)>, Duration) {
        let passed = match self.pause {
            Pause::Real => Duration::ZERO,
            Pause::Virtual(passed, _) => passed,
        };
        match self.out {
            Sink::Timed(parts) => (parts, passed),
            _ => (Vec::new(), passed),
        }
    }

    /// Reports whether time passes for real.
    pub(super) fn is_live(&self) -> bool {
        matches!(self.pause, Pause::Real)
    }

    /// Returns the size of the terminal, if there is one.
    pub(super) fn terminal(&self) -> Option<TerminalSize> {
        self.terminal.as_ref().map(|size| *size.borrow())
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) {
        let to_err = self.routes.out_to_err;
        self.emit(to_err, bytes).await;
    }

    pub(super) async fn write_err(&mut self, bytes: &[u8]) {
        let to_err = !self.routes.err_to_out;
        self.emit(to_err, bytes).await;
    }

    async fn emit(&mut self, to_err: bool, bytes: &[u8]) {
        let has_terminal = self.terminal.is_some();
        let passed = match self.pause {
            Pause::Real => Duration::ZERO,
            Pause::Virtual(passed, _) => passed,
        };
        let sink = match &mut self.err {
            Sink::Merged => &mut self.out,
            err if to_err => err,
            _ => &mut self.out,
        };
        match sink {
            Sink::Null | Sink::Merged => {}
            Sink::Captured(text) => text.extend_from_slice(bytes),
            Sink::Timed(parts) => parts.push((passed, bytes.to_vec())),
            Sink::Live(stream) => {
                // A client that has gone reads nothing.
                let _ = if has_terminal {
                    stream.write_all(&with_carriage_returns(bytes)).await
                } else {
                    stream.write_all(bytes).await
                };
            }
        }
    }

    /// Prompts for a line on a terminal.
    pub(super) async fn prompt(&mut self, is_first: bool) {
        if self.terminal.is_some() {
            let prompt = if is_first { "/ # " } else { "> " };
            self.write(prompt.as_bytes()).await;
        }
    }

    fn input(&mut self) -> Option<&mut Input> {
        self.inputs.last_mut()
    }

    pub(super) async fn read(&mut self) -> Vec<u8> {
        let bytes = match self.input() {
            Some(input) => input.read().await,
            None => Vec::new(),
        };
        self.echo(&bytes).await;
        bytes
    }

    pub(super) async fn read_line(&mut self) -> Option<Vec<u8>> {
        let line = match self.input() {
            Some(input) => input.read_line().await,
            None => None,
        };
        self.echo(line.as_deref().unwrap_or_default()).await;
        line
    }

    /// Shows input from a terminal.
    async fn echo(&mut self, bytes: &[u8]) {
        let is_live = matches!(self.inputs.last(), Some(Input::Live(_)));
        if is_live && self.terminal.is_some() && !bytes.is_empty() {
            self.write(bytes).await;
        }
    }

    /// Waits. Returns false if the virtual time is over.
    pub(super) async fn sleep(&mut self, time: Duration) -> bool {
        match &mut self.pause {
            Pause::Real => {
                tokio::time::sleep(time).await;
                true
            }
            Pause::Virtual(passed, limit) => {
                *passed = passed.saturating_add(time);
                passed < limit
            }
        }
    }

    pub(super) fn replace_out(&mut self, sink: Sink) -> Sink {
        std::mem::replace(&mut self.out, sink)
    }

    pub(super) fn replace_err(&mut self, sink: Sink) -> Sink {
        std::mem::replace(&mut self.err, sink)
    }

    pub(super) fn push_input(&mut self, input: Input) {
        self.inputs.push(input);
    }

    /// Removes an input; `above` is the number of inputs that stay above it.
    pub(super) fn pop_input(&mut self, above: usize) {
        if let Some(at) = self.inputs.len().checked_sub(above + 1) {
            self.inputs.remove(at);
        }
    }

    pub(super) fn route_out_to_err(&mut self) -> Routes {
        let before = self.routes;
        self.routes.out_to_err = true;
        before
    }

    pub(super) fn route_err_to_out(&mut self) -> Routes {
        let before = self.routes;
        self.routes.err_to_out = true;
        before
    }

    pub(super) fn set_routes(&mut self, routes: Routes) {
        self.routes = routes;
    }
}

fn with_carriage_returns(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len() + 8);
    for byte in bytes {
        if *byte == b'\n' {
            text.push(b'\r');
        }
        text.push(*byte);
    }
    text
}
