//! Forwarded ports in a tunnel: each connection has two SPDY streams, for its data and for errors.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt, join};
use futures::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::sync::mpsc;

use super::spdy::{self, Decoder, Encoder, Frame, Malformed};
use super::{PIPE_MAX, READ_MAX, Socket};
use crate::containers::NodePod;

/// Number of frames on their way to the client.
const FRAMES_MAX: usize = 16;

/// Limit of connections at a time, those that wait for their second stream included.
const CONNECTIONS_MAX: usize = 1000;

/// The streams of a connection that have been opened.
#[derive(Clone, Copy, Debug, Default)]
struct Opened {
    errors: Option<u32>,
    data: Option<u32>,
}

/// Data of the client for a stream.
struct Input {
    stream: u32,
    data: Bytes,
    is_last: bool,
}

/// A tunnel to a pod.
struct Tunnel {
    pod: Arc<dyn NodePod>,
    encoder: Encoder,
    /// Connections that wait for a stream, by the client's number.
    waiting: BTreeMap<String, Opened>,
    /// The ways to the pod, by the stream of the data.
    writers: BTreeMap<u32, WriteHalf<DuplexStream>>,
    /// Each returns the stream of its data.
    connections: FuturesUnordered<BoxFuture<'static, u32>>,
    frames: mpsc::Sender<Vec<u8>>,
    input: Option<Input>,
}

/// Forwards ports of a pod until the client closes the tunnel.
pub(crate) async fn tunnel(mut socket: Socket, pod: Arc<dyn NodePod>) {
    let (frames, mut outgoing) = mpsc::channel(FRAMES_MAX);
    let mut decoder = Decoder::default();
    let mut tunnel = Tunnel {
        pod,
        encoder: Encoder::default(),
        waiting: BTreeMap::new(),
        writers: BTreeMap::new(),
        connections: FuturesUnordered::new(),
        frames,
        input: None,
    };
    loop {
        while tunnel.input.is_none() {
            let answer = match decoder.next() {
                Ok(None) => break,
                Ok(Some(frame)) => tunnel.take(frame),
                Err(malformed) => Err(malformed),
            };
            let sent = match answer {
                Ok(answer) => answer.is_empty() || socket.send_whole(answer).await,
                Err(Malformed) => false,
            };
            if !sent {
                return;
            }
        }
        tokio::select! {
            biased;
            Some(frame) = outgoing.recv() => {
                if !socket.send_whole(frame).await {
                    return;
                }
            }
            Some(data) = tunnel.connections.next(), if !tunnel.connections.is_empty() => {
                tunnel.writers.remove(&data);
            }
            () = write(&mut tunnel.writers, &mut tunnel.input), if tunnel.input.is_some() => {}
            received = socket.receive_whole(), if tunnel.input.is_none() => match received {
                Some(bytes) => decoder.push(&bytes),
                None => return,
            },
        }
    }
}

impl Tunnel {
    /// Processes a frame. Returns the response, if any.
    fn take(&mut self, frame: Frame) -> Result<Vec<u8>, Malformed> {
        match frame {
            Frame::Open { stream, headers } => {
                self.open(stream, &headers)?;
                return Ok(self.encoder.accept(stream));
            }
            Frame::Data {
                stream,
                data,
                is_last,
            } => {
                if self.writers.contains_key(&stream) {
                    self.input = Some(Input {
                        stream,
                        data,
                        is_last,
                    });
                }
            }
            Frame::Reset { stream } => {
                let (data, is_last) = (Bytes::new(), true);
                self.input = Some(Input {
                    stream,
                    data,
                    is_last,
                });
            }
            Frame::Ping(number) => return Ok(spdy::ping(number)),
            Frame::Other => {}
        }
        Ok(Vec::new())
    }

    /// Opens a stream, and connects to the port once both streams of the connection are open.
    fn open(&mut self, stream: u32, headers: &[(String, String)]) -> Result<(), Malformed> {
        let header = |wanted: &str| {
            let mut found = headers.iter().filter(|(name, _)| name == wanted);
            found.next().map(|(_, value)| value.as_str())
        };
        let number = header("requestid").ok_or(Malformed)?;
        let port = header("port").and_then(|port| port.parse().ok());
        let port = port.filter(|port| *port > 0).ok_or(Malformed)?;
        if self.waiting.len() + self.connections.len() >= CONNECTIONS_MAX {
            return Err(Malformed);
        }
        let opened = self.waiting.entry(number.to_owned()).or_default();
        match header("streamtype") {
            Some("error") => opened.errors = Some(stream),
            Some("data") => opened.data = Some(stream),
            _ => return Err(Malformed),
        }
        if let Opened {
            errors: Some(errors),
            data: Some(data),
        } = *opened
        {
            self.waiting.remove(number);
            self.connect(port, errors, data);
        }
        Ok(())
    }

    fn connect(&mut self, port: u16, errors: u32, data: u32) {
        let (near, far) = duplex(PIPE_MAX);
        let (reader, writer) = split(near);
        self.writers.insert(data, writer);
        let connected = self.pod.connect(port, far);
        let frames = self.frames.clone();
        let connection = async move {
            let (result, ()) = join(connected, read(reader, data, &frames)).await;
            if let Err(message) = result {
                // The client may have gone.
                let _ = frames
                    .send(spdy::data(errors, message.as_bytes(), false))
                    .await;
            }
            let _ = frames.send(spdy::data(errors, b"", true)).await;
            data
        };
        self.connections.push(connection.boxed());
    }
}

/// Reads from a connection until its end.
async fn read(mut reader: ReadHalf<DuplexStream>, stream: u32, frames: &mpsc::Sender<Vec<u8>>) {
    let mut buffer = vec![0; READ_MAX];
    while let Ok(read @ 1..) = reader.read(&mut buffer).await {
        let data = buffer.get(..read).unwrap_or_default();
        if frames.send(spdy::data(stream, data, false)).await.is_err() {
            return;
        }
    }
    // The client may have gone.
    let _ = frames.send(spdy::data(stream, b"", true)).await;
}

/// Writes some input to its connection, and drops it if the pod reads no more.
async fn write(writers: &mut BTreeMap<u32, WriteHalf<DuplexStream>>, input: &mut Option<Input>) {
    let Some(Input {
        stream,
        data,
        is_last,
    }) = input
    else {
        return;
    };
    let Some(writer) = writers.get_mut(stream) else {
        *input = None;
        return;
    };
    if !data.is_empty() {
        let written = writer.write(data).await.unwrap_or(0);
        data.advance(written);
        if written == 0 {
            data.clear();
        }
    }
    if data.is_empty() {
        if *is_last {
            // A pod that has closed the connection needs no end.
            let _ = writer.shutdown().await;
        }
        *input = None;
    }
}
