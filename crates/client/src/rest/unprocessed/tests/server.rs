//! A server that speaks just enough HTTP/2 to end connections in the middle of requests.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The client's first bytes.
const PREFACE: usize = 24;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;
const REFUSED_STREAM: u32 = 7;
/// The compressed header `:status: 200`.
const STATUS_200: u8 = 0x88;

/// A reaction to a whole request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reaction {
    /// Responds.
    Respond,
    /// Responds to an earlier stream, without waiting for a request.
    RespondTo(u32),
    /// Keeps the request.
    Hold,
    /// Sends a graceful GOAWAY, and keeps the request.
    GoAway { last: u32 },
    /// Sends a graceful GOAWAY and closes the connection.
    GoAwayAndClose { last: u32 },
    /// Resets the request's stream.
    Refuse,
}

/// A server on a loopback port, until dropped.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    requests: Arc<Mutex<Vec<usize>>>,
    _connections: JoinSet<()>,
}

impl Server {
    /// Starts a server with the reactions of each connection, in order.
    pub(super) async fn start(script: Vec<Vec<Reaction>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<usize>>> = Arc::default();
        let counts = Arc::clone(&requests);
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut served = JoinSet::new();
            for (index, reactions) in script.into_iter().enumerate() {
                let (stream, _) = listener.accept().await.unwrap();
                counts.lock().unwrap().push(0);
                served.spawn(serve(stream, reactions.into(), index, Arc::clone(&counts)));
            }
            served.join_all().await;
        });
        Self {
            address,
            requests,
            _connections: connections,
        }
    }

    /// Returns the number of whole requests for each connection.
    pub(super) fn requests(&self) -> Vec<usize> {
        self.requests.lock().unwrap().clone()
    }
}

/// Serves a connection until it ends or breaks.
async fn serve(
    mut stream: TcpStream,
    mut reactions: VecDeque<Reaction>,
    index: usize,
    counts: Arc<Mutex<Vec<usize>>>,
) {
    stream.read_exact(&mut [0; PREFACE]).await.unwrap();
    send(&mut stream, SETTINGS, 0, 0, &[]).await;
    while let Some((kind, flags, id)) = receive(&mut stream).await {
        if kind == SETTINGS && flags & ACK == 0 {
            send(&mut stream, SETTINGS, ACK, 0, &[]).await;
        }
        let is_whole = matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0;
        if !is_whole {
            continue;
        }
        counts.lock().unwrap()[index] += 1;
        let reaction = reactions.pop_front().expect("a reaction to each request");
        if !react(&mut stream, reaction, id).await {
            return;
        }
        while let Some(Reaction::RespondTo(earlier)) = reactions.front().copied() {
            reactions.pop_front();
            respond(&mut stream, earlier).await;
        }
    }
}

/// Returns false if the connection must end.
async fn react(stream: &mut TcpStream, reaction: Reaction, id: u32) -> bool {
    match reaction {
        Reaction::Respond => respond(stream, id).await,
        Reaction::RespondTo(earlier) => respond(stream, earlier).await,
        Reaction::Hold => {}
        Reaction::GoAway { last } => go_away(stream, last).await,
        Reaction::GoAwayAndClose { last } => {
            go_away(stream, last).await;
            return false;
        }
        Reaction::Refuse => {
            send(stream, RST_STREAM, 0, id, &REFUSED_STREAM.to_be_bytes()).await;
        }
    }
    true
}

async fn respond(stream: &mut TcpStream, id: u32) {
    send(stream, HEADERS, END_HEADERS, id, &[STATUS_200]).await;
    send(stream, DATA, END_STREAM, id, b"{}").await;
}

/// Names the last processed stream, and no error.
async fn go_away(stream: &mut TcpStream, last: u32) {
    let mut payload = last.to_be_bytes().to_vec();
    payload.extend(0_u32.to_be_bytes());
    send(stream, GO_AWAY, 0, 0, &payload).await;
}

async fn send(stream: &mut TcpStream, kind: u8, flags: u8, id: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(id.to_be_bytes());
    frame.extend(payload);
    // The client may have closed the connection after a GOAWAY.
    let _ = stream.write_all(&frame).await;
}

/// Returns kind, flags and stream of the next frame, or none at the end. Responds to pings.
async fn receive(stream: &mut TcpStream) -> Option<(u8, u8, u32)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let [a, b, c, kind, flags, stream_id @ ..] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    stream.read_exact(&mut payload).await.ok()?;
    if kind == PING && flags & ACK == 0 {
        send(stream, PING, ACK, 0, &payload).await;
    }
    Some((kind, flags, u32::from_be_bytes(stream_id)))
}
