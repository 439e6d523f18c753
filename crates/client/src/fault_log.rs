//! Faults that last: logged when they begin or change, and when they end.

use tokio::time::Instant;

/// What was logged of a fault that may last.
///
/// The lines themselves are the owner's; this says when one is due.
#[derive(Debug)]
pub struct FaultLog<T = ()>(Option<Fault<T>>);

#[derive(Debug)]
struct Fault<T> {
    /// As it was logged last.
    logged: T,
    /// When it began.
    since: Instant,
}

impl<T> Default for FaultLog<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: PartialEq> FaultLog<T> {
    /// Records the fault. True if it is to be logged: there was none, or another one.
    pub fn begin(&mut self, fault: T) -> bool {
        match &mut self.0 {
            Some(Fault { logged, .. }) if *logged == fault => false,
            Some(Fault { logged, .. }) => {
                *logged = fault;
                true
            }
            None => {
                let since = Instant::now();
                self.0 = Some(Fault {
                    logged: fault,
                    since,
                });
                true
            }
        }
    }

    /// Records the end of the fault. Returns what was logged last, and for how long there was a
    /// fault; none where there was none, and nothing is to be logged.
    pub fn end(&mut self) -> Option<(T, String)> {
        let Fault { logged, since } = self.0.take()?;
        Some((logged, format!("{} s", since.elapsed().as_secs())))
    }

    /// Whether a fault lasts.
    pub fn is_open(&self) -> bool {
        self.0.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_fault_is_logged_once_until_it_changes_or_ends() {
        let mut log = FaultLog::default();
        assert!(log.end().is_none());
        assert!(log.begin("a"));
        assert!(!log.begin("a"));
        tokio::time::advance(Duration::from_secs(3)).await;
        assert!(log.begin("b"));
        assert!(!log.begin("b") && log.is_open());
        assert_eq!(log.end(), Some(("b", "3 s".to_owned())));
        assert!(log.end().is_none() && !log.is_open());
        assert!(log.begin("b"));
    }
}
