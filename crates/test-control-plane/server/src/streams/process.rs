//! The channels of a process: 0 to 2 are its streams, 3 carries its status, 4 the sizes of the
//! terminal, and 255 the numbers of closed channels.

use bytes::{Buf, Bytes};
use kube_test_control_plane_api::query::Query;
use kube_test_control_plane_api::status::ApiError;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::watch;

use super::{PIPE_MAX, Piece, Protocol, READ_MAX, Socket};
use crate::containers::{Exit, KubeletError, Process, Stdio, TerminalSize};

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
const RESIZE: u8 = 4;
const CLOSE: u8 = 255;

/// The streams of a process that a client wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Channels {
    /// Standard input, output and error, by the numbers of their channels.
    wanted: [bool; 3],
    tty: bool,
}

impl Channels {
    /// Reads the parameters of a request, which have these names.
    ///
    /// # Errors
    ///
    /// None of the streams is requested.
    pub(crate) fn of(query: &Query, names: [&str; 3]) -> Result<Self, KubeletError> {
        let tty = query.flag("tty");
        let [stdin, stdout, stderr] = names.map(|name| query.flag(name));
        // A terminal has one output.
        let wanted = [stdin, stdout, stderr && !tty];
        if wanted.contains(&true) {
            return Ok(Self { wanted, tty });
        }
        let message = "you must specify at least 1 of stdin, stdout, stderr";
        Err(KubeletError::new(400, message))
    }

    /// Returns the channel of the empty message that confirms the connection.
    fn first(self) -> u8 {
        match self.wanted {
            [_, true, _] => STDOUT,
            [_, _, true] => STDERR,
            _ => STATUS,
        }
    }
}

/// The server's ends of a process's streams.
struct Ends {
    stdin: Option<DuplexStream>,
    stdout: Option<DuplexStream>,
    stderr: Option<DuplexStream>,
    sizes: watch::Sender<TerminalSize>,
}

impl Ends {
    /// Creates the streams of a process.
    fn new(channels: Channels) -> (Self, Stdio) {
        let pipe = |wanted: bool| wanted.then(|| duplex(PIPE_MAX)).unzip();
        let [stdin, stdout, stderr] = channels.wanted.map(pipe);
        let ((stdin, process_stdin), (stdout, process_stdout), (stderr, process_stderr)) =
            (stdin, stdout, stderr);
        let (sizes, terminal) = watch::channel(TerminalSize::default());
        let ends = Self {
            stdin,
            stdout,
            stderr,
            sizes,
        };
        let stdio = Stdio {
            stdin: process_stdin,
            stdout: process_stdout,
            stderr: process_stderr,
            terminal: channels.tty.then_some(terminal),
        };
        (ends, stdio)
    }

    /// Processes a message of the client. Returns the input in it.
    fn take(&mut self, piece: Piece) -> Bytes {
        match piece.channel {
            STDIN => return piece.data,
            RESIZE => {
                if let Ok(size) = serde_json::from_slice(&piece.data) {
                    self.sizes.send_replace(size);
                }
            }
            CLOSE if piece.data.first() == Some(&STDIN) => self.stdin = None,
            _ => {}
        }
        Bytes::new()
    }
}

/// Runs a process on a connection, and sends its status at the end.
pub(crate) async fn converse(
    mut socket: Socket,
    protocol: Protocol,
    channels: Channels,
    process: Result<Process, KubeletError>,
) {
    if !socket.send(channels.first(), b"").await {
        return;
    }
    let status = match process {
        Ok(process) => run(&mut socket, protocol, channels, process).await,
        Err(error) => Some(refused(&error)),
    };
    let Some(status) = status else {
        return;
    };
    let is_sent = match status_text(&status, protocol) {
        Some(text) => socket.send(STATUS, text.as_bytes()).await,
        None => true,
    };
    if is_sent {
        socket.close().await;
    }
}

/// Carries the streams of a process. Returns its status; `None` if the client has gone.
async fn run(
    socket: &mut Socket,
    protocol: Protocol,
    channels: Channels,
    process: Process,
) -> Option<Value> {
    let (mut ends, stdio) = Ends::new(channels);
    let mut process = process(stdio);
    let mut exit = None;
    let mut input = Bytes::new();
    let (mut out, mut err) = (vec![0; READ_MAX], vec![0; READ_MAX]);
    loop {
        if let Some(exit) = &exit
            && ends.stdout.is_none()
            && ends.stderr.is_none()
        {
            return Some(status_of(exit, protocol));
        }
        tokio::select! {
            biased;
            read = read(&mut ends.stdout, &mut out), if ends.stdout.is_some() => match read {
                0 => ends.stdout = None,
                read if !socket.send(STDOUT, out.get(..read)?).await => return None,
                _ => {}
            },
            read = read(&mut ends.stderr, &mut err), if ends.stderr.is_some() => match read {
                0 => ends.stderr = None,
                read if !socket.send(STDERR, err.get(..read)?).await => return None,
                _ => {}
            },
            ended = &mut process, if exit.is_none() => exit = Some(ended),
            written = write(&mut ends.stdin, &input), if !input.is_empty() => match written {
                // The process reads no more.
                0 => {
                    input.clear();
                    ends.stdin = None;
                }
                written => input.advance(written),
            },
            received = socket.receive(), if input.is_empty() => input = ends.take(received?),
        }
    }
}

/// Reads from a stream; 0 bytes at its end.
async fn read(stream: &mut Option<DuplexStream>, buffer: &mut [u8]) -> usize {
    match stream {
        Some(stream) => stream.read(buffer).await.unwrap_or(0),
        None => 0,
    }
}

/// Writes to a stream; 0 bytes if the process reads no more.
async fn write(stream: &mut Option<DuplexStream>, data: &[u8]) -> usize {
    match stream {
        Some(stream) => stream.write(data).await.unwrap_or(0),
        None => 0,
    }
}

/// Returns the status of a process that has ended.
fn status_of(exit: &Result<(), Exit>, protocol: Protocol) -> Value {
    match exit {
        Ok(()) | Err(Exit::Code(0)) => json!({"metadata": {}, "status": "Success"}),
        Err(Exit::Code(code)) => json!({
            "metadata": {},
            "status": "Failure",
            "message": format!(
                "command terminated with non-zero exit code: command terminated with exit code \
                 {code}"
            ),
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
        Err(Exit::Failed(message)) => {
            let why = format!("error executing command in container: {message}");
            let error = ApiError::internal_error(&why);
            // The API server's translation for version 5 wraps the kubelet's error.
            let is_wrapped = protocol == Protocol::V5;
            let wrapped = || ApiError::internal_error(&error.message);
            without_type(&if is_wrapped { wrapped() } else { error })
        }
    }
}

/// Returns a status as the protocol carries it; `None` if it says nothing.
fn status_text(status: &Value, protocol: Protocol) -> Option<String> {
    if protocol != Protocol::Unnamed {
        return Some(status.to_string());
    }
    let message = status.get("message").and_then(Value::as_str);
    message.map(str::to_owned)
}

/// Returns the status of a process that was not started.
fn refused(error: &KubeletError) -> Value {
    let message = format!("unable to upgrade connection: {}", error.message);
    without_type(&ApiError::internal_error(&message))
}

/// Returns an error as the status channel carries it.
fn without_type(error: &ApiError) -> Value {
    let mut status = error.to_value();
    if let Some(members) = status.as_object_mut() {
        members.remove("kind");
        members.remove("apiVersion");
    }
    status
}
