//! The election record in a lease.

use jiff::Timestamp;
use kube_apimachinery::time;
use serde::{Deserialize, Serialize};

/// The lease's holder, its times, and the number of leader transitions.
///
/// Upstream: `resourcelock.LeaderElectionRecord`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaderElectionRecord {
    /// The holder; empty if the lease is released.
    pub holder_identity: String,
    /// Time after the last renewal at which rivals may take the lease.
    pub lease_duration_seconds: i32,
    /// The time at which this holder acquired the lease.
    pub acquire_time: Option<Timestamp>,
    /// The time of the last renewal. Only a change of it matters.
    pub renew_time: Option<Timestamp>,
    /// Number of leader transitions.
    pub leader_transitions: i32,
}

/// The `spec` of a lease. Times are in microseconds: servers reject any other precision.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LeaseSpec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<i32>,
    acquire_time: Option<String>,
    renew_time: Option<String>,
    lease_transitions: Option<i32>,
}

impl LeaderElectionRecord {
    /// Decodes the `spec` of a lease; missing fields are empty or 0. Times out of range saturate,
    /// and invalid times are dropped: no decision needs them.
    ///
    /// Upstream: `LeaseSpecToLeaderElectionRecord`.
    pub(super) fn from_spec(spec: &str) -> Result<Self, serde_json::Error> {
        let spec: Option<LeaseSpec> = serde_json::from_str(spec)?;
        let spec = spec.unwrap_or_default();
        let parse = |text: Option<String>| text.and_then(|text| time::parse_saturating(&text));
        Ok(Self {
            holder_identity: spec.holder_identity.unwrap_or_default(),
            lease_duration_seconds: spec.lease_duration_seconds.unwrap_or_default(),
            acquire_time: parse(spec.acquire_time),
            renew_time: parse(spec.renew_time),
            leader_transitions: spec.lease_transitions.unwrap_or_default(),
        })
    }

    /// Encodes the `spec` of a lease with only these fields.
    ///
    /// Upstream: `LeaderElectionRecordToLeaseSpec`.
    pub(super) fn to_spec(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&LeaseSpec {
            holder_identity: Some(self.holder_identity.clone()),
            lease_duration_seconds: Some(self.lease_duration_seconds),
            acquire_time: self.acquire_time.map(time::format_micros),
            renew_time: self.renew_time.map(time::format_micros),
            lease_transitions: Some(self.leader_transitions),
        })
    }
}

/// Rounds a time down to the lease's precision.
pub(super) fn whole_micros(now: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spec_has_five_members_and_microsecond_times() {
        let time: Timestamp = "2026-01-02T03:04:05.6789019Z".parse().unwrap();
        let record = LeaderElectionRecord {
            holder_identity: "host_1".to_owned(),
            lease_duration_seconds: 15,
            acquire_time: Some("2026-01-02T03:04:05Z".parse().unwrap()),
            renew_time: Some(whole_micros(time)),
            leader_transitions: 0,
        };
        let spec = record.to_spec().unwrap();
        assert_eq!(
            spec,
            r#"{"holderIdentity":"host_1","leaseDurationSeconds":15,"acquireTime":"2026-01-02T03:04:05.000000Z","renewTime":"2026-01-02T03:04:05.678901Z","leaseTransitions":0}"#
        );
        assert_eq!(LeaderElectionRecord::from_spec(&spec).unwrap(), record);
    }

    #[test]
    fn missing_spec_members_are_empty() {
        for spec in [
            "null",
            "{}",
            r#"{"holderIdentity":null,"preferredHolder":"x"}"#,
        ] {
            let record = LeaderElectionRecord::from_spec(spec).unwrap();
            assert_eq!(record, LeaderElectionRecord::default(), "{spec}");
        }
    }

    #[test]
    fn invalid_times_do_not_break_spec() {
        for (renewed, time) in [
            ("10000-01-01T11:59:59.000000Z", Some(Timestamp::MAX)),
            ("soon", None),
            ("0001-01-01T00:00:00Z", None),
        ] {
            let spec = format!(r#"{{"holderIdentity":"host_1","renewTime":"{renewed}"}}"#);
            let record = LeaderElectionRecord::from_spec(&spec).unwrap();
            assert_eq!(record.holder_identity, "host_1");
            assert_eq!(record.renew_time, time, "{renewed}");
        }
    }
}
