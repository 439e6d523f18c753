//! Polling for an expected state.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Time between two polls.
const POLL: Duration = Duration::from_millis(100);

/// Time limit of a wait, in tokio's time, which passes immediately with an embedded control plane.
#[derive(Clone, Copy, Debug)]
pub struct Patience(pub Duration);

impl Patience {
    /// Polls until `look` returns a value.
    ///
    /// # Panics
    ///
    /// Panics if it doesn't in time.
    pub async fn until<T>(self, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + self.0;
        loop {
            if let Some(seen) = look().await {
                return seen;
            }
            assert!(
                Instant::now() < deadline,
                "after {:?} still waiting: {what}",
                self.0
            );
            sleep(POLL).await;
        }
    }

    /// Polls for the whole time.
    pub async fn throughout(self, mut look: impl AsyncFnMut()) {
        let end = Instant::now() + self.0;
        while Instant::now() < end {
            look().await;
            sleep(POLL).await;
        }
    }
}
