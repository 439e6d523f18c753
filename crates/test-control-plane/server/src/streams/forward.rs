//! The channels of forwarded ports: each port has one for its data and, after it, one for errors.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use futures::StreamExt;
use futures::future::join;
use futures::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, duplex, split};
use tokio::sync::mpsc;

use super::{PIPE_MAX, READ_MAX, Socket};
use crate::containers::NodePod;

/// Number of pieces on their way to the client.
const PIECES_MAX: usize = 16;

type Pipe = tokio::io::DuplexStream;

/// Data from a pod, and its channel.
type Sent = (u8, Bytes);

/// Forwards ports of a pod until one side closes all connections.
pub(crate) async fn forward(mut socket: Socket, ports: Vec<u16>, pod: Arc<dyn NodePod>) {
    let (sender, mut pieces) = mpsc::channel(PIECES_MAX);
    let mut connections = FuturesUnordered::new();
    let mut writers: Vec<Option<WriteHalf<Pipe>>> = Vec::new();
    for (channel, port) in (0..=u8::MAX).step_by(2).zip(ports) {
        let number = port.to_le_bytes();
        if !socket.send(channel, &number).await || !socket.send(channel + 1, &number).await {
            return;
        }
        let (near, far) = duplex(PIPE_MAX);
        let (reader, writer) = split(near);
        writers.push(Some(writer));
        let connected = pod.connect(port, far);
        let (data, errors) = (sender.clone(), sender.clone());
        connections.push(async move {
            let (result, ()) = join(connected, read(reader, channel, data)).await;
            if let Err(message) = result {
                // The client may have gone.
                let _ = errors.send((channel + 1, Bytes::from(message))).await;
            }
        });
    }
    drop(sender);
    let mut input: Option<(usize, Bytes)> = None;
    loop {
        tokio::select! {
            biased;
            piece = pieces.recv() => match piece {
                // All connections have ended.
                None => break,
                Some((channel, data)) => {
                    if !socket.send(channel, &data).await {
                        return;
                    }
                }
            },
            Some(()) = connections.next(), if !connections.is_empty() => {}
            () = write(&mut writers, &mut input), if input.is_some() => {}
            received = socket.receive(), if input.is_none() => {
                let Some(piece) = received else {
                    return;
                };
                if piece.channel % 2 == 0 && !piece.data.is_empty() {
                    input = Some((usize::from(piece.channel / 2), piece.data));
                }
            }
        }
    }
    socket.close().await;
}

/// Reads from a connection until its end.
async fn read(mut reader: ReadHalf<Pipe>, channel: u8, pieces: mpsc::Sender<Sent>) {
    let mut buffer = vec![0; READ_MAX];
    while let Ok(read @ 1..) = reader.read(&mut buffer).await {
        let data = Bytes::copy_from_slice(buffer.get(..read).unwrap_or_default());
        if pieces.send((channel, data)).await.is_err() {
            return;
        }
    }
}

/// Writes some input to its connection, and drops it if the pod reads no more.
async fn write(writers: &mut [Option<WriteHalf<Pipe>>], input: &mut Option<(usize, Bytes)>) {
    let Some((port, data)) = input else {
        return;
    };
    let writer = writers.get_mut(*port).and_then(Option::as_mut);
    let written = match writer {
        Some(writer) => writer.write(data).await.unwrap_or(0),
        None => 0,
    };
    if written == 0 || written == data.len() {
        *input = None;
    } else {
        data.advance(written);
    }
}
