//! Lasting faults: logged when they start or change, and when they end.

use tokio::time::Instant;

/// The logged state of a fault that may last.
///
/// The owner writes the lines; this type decides when one is due.
#[derive(Debug)]
pub struct FaultLog<T = ()>(Option<Fault<T>>);

#[derive(Debug)]
struct Fault<T> {
    /// The state logged last.
    logged: T,
    /// The start of the fault.
    since: Instant,
}

impl<T> Default for FaultLog<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: PartialEq> FaultLog<T> {
    /// Records the fault. Returns true if it needs a log line because it is new or has changed.
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

    /// Records the end of the fault. Returns the state logged last and the fault's duration, or
    /// none if there was no fault to end.
    pub fn end(&mut self) -> Option<(T, String)> {
        let Fault { logged, since } = self.0.take()?;
        Some((logged, format!("{} s", since.elapsed().as_secs())))
    }

    /// Returns true while the fault lasts.
    pub fn is_open(&self) -> bool {
        self.0.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn fault_is_logged_once_until_it_changes_or_ends() {
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
