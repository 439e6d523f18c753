//! Lists that somebody waits for.

use tokio::sync::watch;

/// Makes an informer list again, for whoever needs a cache that is not older than this moment: what
/// a watch has shown so far may be.
///
/// Clones are for the same informer.
#[derive(Debug, Clone)]
pub struct Relister {
    wanted: watch::Sender<u64>,
    made: watch::Receiver<u64>,
}

impl Relister {
    /// Asks for a list at once. The future waits until the cache, and the handlers, have seen one
    /// that began after this call. Of an informer that doesn't run yet that is its first one; of one
    /// that has ended, none.
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

    /// Waits until the informer has ended, by whatever cause.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut made = self.made.clone();
        async move {
            // Fails when nobody is left who could make one.
            let _ = made.wait_for(|_| false).await;
        }
    }
}

/// The informer's side: how many lists were asked for, and for how many of them its latest list
/// stands.
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

    /// How many lists have been asked for: a list that begins now stands for them all.
    pub(super) fn wanted(&self) -> u64 {
        *self.wanted.borrow()
    }

    /// A list that began when so many had been asked for is in the cache.
    pub(super) fn made(&self, wanted: u64) {
        self.made.send_replace(wanted);
    }

    /// Runs a future until another list is asked for; none if one is.
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
