//! Pod phases, the Ready condition, and availability.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer};

/// The phase of a pod's lifecycle.
///
/// Upstream: `v1.PodPhase`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodPhase {
    /// No phase: the object has never been stored by an API server.
    #[default]
    None,
    /// Accepted, but some containers haven't started.
    Pending,
    /// Bound to a node, and at least one container is running.
    Running,
    /// All containers have succeeded and won't be restarted.
    Succeeded,
    /// All containers have ended, at least one in failure.
    Failed,
    /// The state can't be determined, or is unknown to this version.
    Unknown,
}

impl PodPhase {
    /// Parses a phase; an unknown one is [`PodPhase::Unknown`].
    pub fn from_text(text: &str) -> Self {
        match text {
            "" => Self::None,
            "Pending" => Self::Pending,
            "Running" => Self::Running,
            "Succeeded" => Self::Succeeded,
            "Failed" => Self::Failed,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for PodPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "",
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        })
    }
}

impl<'de> Deserialize<'de> for PodPhase {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Option::<std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Ok(Self::from_text(text.as_deref().unwrap_or("")))
    }
}

/// The parts of a pod's Ready condition that determine availability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// True if the condition's status is `True`.
    pub ready: bool,
    /// Last change of the status; `None` for unset and zero times.
    pub last_transition_time: Option<Timestamp>,
}

impl Readiness {
    /// Returns true if a pod has been ready for at least `min_ready_seconds` at `now`, independent
    /// of its phase.
    ///
    /// Upstream: `podutil.IsPodAvailable`.
    pub fn is_available(self, min_ready_seconds: i32, now: Timestamp) -> bool {
        if !self.ready {
            return false;
        }
        min_ready_seconds == 0
            || self
                .available_at(min_ready_seconds)
                .is_some_and(|moment| moment <= now)
    }

    /// Time at which a ready pod becomes available; `None` while it isn't ready, or without a
    /// transition time. Saturates at the largest timestamp.
    pub fn available_at(self, min_ready_seconds: i32) -> Option<Timestamp> {
        let since = self.last_transition_time.filter(|_| self.ready)?;
        let wait = SignedDuration::from_secs(i64::from(min_ready_seconds));
        Some(since.checked_add(wait).unwrap_or(Timestamp::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn phases_print_and_parse_back() {
        for text in ["", "Pending", "Running", "Succeeded", "Failed", "Unknown"] {
            assert_eq!(PodPhase::from_text(text).to_string(), text);
        }
        assert_eq!(PodPhase::from_text("failed"), PodPhase::Unknown);
    }

    #[test]
    fn ready_pod_becomes_available_at_the_exact_time() {
        let ready = Readiness {
            ready: true,
            last_transition_time: Some(at(100)),
        };
        assert!(!ready.is_available(10, at(109)));
        assert!(ready.is_available(10, at(110)));
        assert!(ready.is_available(0, at(0)));
        assert_eq!(ready.available_at(10), Some(at(110)));
    }

    #[test]
    fn missing_transition_time_satisfies_only_zero_seconds() {
        let ready = Readiness {
            ready: true,
            last_transition_time: None,
        };
        assert!(ready.is_available(0, at(0)));
        assert!(!ready.is_available(1, at(1_000_000)));
    }

    #[test]
    fn unready_pod_is_never_available() {
        let unready = Readiness {
            ready: false,
            last_transition_time: Some(at(0)),
        };
        assert!(!unready.is_available(0, at(100)));
        assert_eq!(unready.available_at(0), None);
    }
}
