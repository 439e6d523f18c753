//! Lists on request.

use tokio::sync::watch;

/// Makes an informer list again, for callers that need a cache as new as this moment. The watch may
/// lag behind.
///
/// Clones refer to the same informer.
#[derive(Debug, Clone)]
pub struct Relister {
    wanted: watch::Sender<u64>,
    made: watch::Receiver<u64>,
}

impl Relister {
    /// Requests an immediate list. The future completes when the cache and the handlers have seen a
    /// list that began after this call. Before the informer runs, its first list counts. After the
    /// informer has ended, the future completes without a list.
    pub fn relist(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut number = 0;
        self.wanted.send_modify(|wanted| {
            *wanted += 1;
            number = *wanted;
        });
        let mut made = self.made.clone();
        async move {
            if made.wait_for(|made| *made >= number).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until the informer has ended for any reason.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut made = self.made.clone();
        async move {
            // Fails when the informer has been dropped.
            let _ = made.wait_for(|_| false).await;
        }
    }
}

/// The informer's side: the number of requested lists, and the number of requests that the latest
/// list covers.
#[derive(Clone)]
pub(super) struct Lists {
    wanted: watch::Sender<u64>,
    made: watch::Sender<u64>,
}

impl Default for Lists {
    fn default() -> Self {
        Self {
            wanted: watch::Sender::new(0),
            made: watch::Sender::new(0),
        }
    }
}

impl Lists {
    pub(super) fn relister(&self) -> Relister {
        Relister {
            wanted: self.wanted.clone(),
            made: self.made.subscribe(),
        }
    }

    /// Returns the number of requested lists. A list that begins now covers them all.
    pub(super) fn wanted(&self) -> u64 {
        *self.wanted.borrow()
    }

    /// Records that a list is in the cache. `wanted` is the number of requests when it began.
    pub(super) fn made(&self, wanted: u64) {
        self.made.send_replace(wanted);
    }

    /// Runs a future until a list is requested. Returns none if one is.
    pub(super) async fn run_until_wanted<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let made = *self.made.borrow();
        let mut wanted = self.wanted.subscribe();
        tokio::select! {
            biased;
            _ = wanted.wait_for(|wanted| *wanted > made) => None,
            output = future => Some(output),
        }
    }
}
