//! Waiting for what the cluster must come to.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How often is looked.
const POLL: Duration = Duration::from_millis(100);

/// How long a test waits; the time is tokio's, which an embedded control plane lets pass at once.
#[derive(Clone, Copy, Debug)]
pub struct Patience(pub Duration);

impl Patience {
    /// Looks until there is something to see.
    ///
    /// # Panics
    ///
    /// There is nothing in time.
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

    /// Looks again and again for the whole time.
    pub async fn throughout(self, mut look: impl AsyncFnMut()) {
        let end = Instant::now() + self.0;
        while Instant::now() < end {
            look().await;
            sleep(POLL).await;
        }
    }
}
