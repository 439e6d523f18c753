//! Moments at which something is due.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Returns the moment after a duration; saturates at the largest timestamp.
pub(crate) fn after(since: Timestamp, duration: Duration) -> Timestamp {
    let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    since.checked_add(duration).unwrap_or(Timestamp::MAX)
}

/// Returns the time left until a moment; `None` once it is due.
pub(crate) fn time_left(due: Timestamp, now: Timestamp) -> Option<Duration> {
    let left = Duration::try_from(due.duration_since(now)).ok();
    left.filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moment_is_due_when_no_time_is_left() {
        let second = |second| Timestamp::from_second(second).unwrap();
        let due = after(second(10), Duration::from_secs(5));
        assert_eq!(due, second(15));
        assert_eq!(time_left(due, second(13)), Some(Duration::from_secs(2)));
        assert_eq!(time_left(due, due), None);
        assert_eq!(time_left(due, second(99)), None);
        assert_eq!(after(due, Duration::MAX), Timestamp::MAX);
    }
}
