//! The last look at the fence: when a connection hands bytes to the system.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};

use crate::leaderelection::Fence;

/// A connection that breaks when it is to send something while its fence is closed. A request may
/// have waited for its connection, its encryption, or its turn among others, and the process may
/// have been stopped meanwhile; nothing is left to wait for here.
pub(super) struct FencedIo<T> {
    io: T,
    fence: Option<Fence>,
}

impl<T> FencedIo<T> {
    /// A connection behind a fence; without one everything passes.
    pub(super) fn new(io: T, fence: Option<Fence>) -> Self {
        Self { io, fence }
    }

    fn check(&self) -> io::Result<()> {
        match &self.fence {
            Some(fence) => fence.check().map_err(io::Error::other),
            None => Ok(()),
        }
    }
}

impl<T: Write + Unpin> Write for FencedIo<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.io).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

impl<T: Read + Unpin> Read for FencedIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<T: Connection> Connection for FencedIo<T> {
    fn connected(&self) -> Connected {
        self.io.connected()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::clock::{MonotonicClock as _, TokioClock};
    use crate::leaderelection::NotLeading;

    #[tokio::test(start_paused = true)]
    async fn a_connection_sends_nothing_while_its_fence_is_closed() {
        let clock = TokioClock::new();
        let fence = Fence::new(Arc::new(clock));
        fence.open_until(clock.elapsed() + Duration::from_secs(10));
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut connection = TokioIo::new(FencedIo::new(TokioIo::new(ours), Some(fence)));
        connection.write_all(b"in time").await.unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        let error = connection.write_all(b"too late").await.unwrap_err();
        assert!(error.get_ref().unwrap().is::<NotLeading>());
        theirs.write_all(b"answer").await.unwrap();
        let mut answer = [0; 6];
        connection.read_exact(&mut answer).await.unwrap();
        drop(connection);
        let mut sent = String::new();
        theirs.read_to_string(&mut sent).await.unwrap();
        assert_eq!((sent.as_str(), &answer), ("in time", b"answer"));
    }
}
