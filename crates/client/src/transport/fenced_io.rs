//! The last check of the fence: before a connection hands bytes to the kernel, and when the lease
//! is lost.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};

use crate::fence::{Fence, NotLeading};

/// A connection that fails if it sends while its fence is closed. A request may have waited for its
/// connection, TLS or a stream, and the process may have been suspended meanwhile; nothing after
/// this check waits.
///
/// It also fails when a term ends. Its owner then drops it, and a socket without linger resets: the
/// kernel drops undelivered bytes.
pub(super) struct FencedIo<T> {
    io: T,
    fence: Option<Watched>,
}

struct Watched {
    fence: Fence,
    closed: BoxFuture<'static, ()>,
    is_closed: bool,
}

impl<T> FencedIo<T> {
    /// Creates a connection with a fence; without one it never fails.
    pub(super) fn new(io: T, fence: Option<Fence>) -> Self {
        let fence = fence.map(|fence| Watched {
            closed: Box::pin(fence.closed()),
            fence,
            is_closed: false,
        });
        Self { io, fence }
    }

    /// Fails if the fence is closed.
    fn check(&self) -> io::Result<()> {
        match &self.fence {
            Some(watched) => watched.fence.check().map_err(io::Error::other),
            None => Ok(()),
        }
    }

    /// Fails if the term has ended; otherwise wakes the task when it ends.
    fn check_closed(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let Some(watched) = &mut self.fence else {
            return Ok(());
        };
        watched.is_closed |= watched.closed_now(context);
        if watched.is_closed {
            return Err(io::Error::other(NotLeading));
        }
        Ok(())
    }
}

impl Watched {
    fn closed_now(&mut self, context: &mut Context<'_>) -> bool {
        !self.is_closed && self.closed.as_mut().poll(context).is_ready()
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
        self.check_closed(context)?;
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
        self.check_closed(context)?;
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

    #[tokio::test(start_paused = true)]
    async fn connection_sends_nothing_while_fence_is_closed() {
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

    #[tokio::test(start_paused = true)]
    async fn connection_breaks_at_end_of_term() {
        let clock = TokioClock::new();
        let fence = Fence::new(Arc::new(clock));
        fence.open_until(clock.elapsed() + Duration::from_secs(10));
        let (ours, theirs) = tokio::io::duplex(64);
        let io = FencedIo::new(TokioIo::new(ours), Some(fence.clone()));
        let mut connection = TokioIo::new(io);
        let mut answer = [0; 6];
        let close = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            fence.close();
        };
        let (read, ()) = tokio::join!(connection.read_exact(&mut answer), close);
        assert!(read.unwrap_err().get_ref().unwrap().is::<NotLeading>());
        fence.open_until(clock.elapsed() + Duration::from_secs(10));
        // The next term opens new connections.
        assert!(connection.flush().await.is_err());
        drop(theirs);
    }
}
