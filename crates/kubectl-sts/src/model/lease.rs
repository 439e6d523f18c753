//! Leases of controllers.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::{Metadata, time};

/// A lease.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Lease {
    /// Metadata.
    pub metadata: Metadata,
    spec: LeaseSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LeaseSpec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<i64>,
    #[serde(deserialize_with = "time")]
    renew_time: Option<Timestamp>,
}

impl Lease {
    /// The holder, unless the lease has expired.
    pub fn holder(&self, now: Timestamp) -> Option<&str> {
        let holder = self.spec.holder_identity.as_deref()?;
        let duration = SignedDuration::from_secs(self.spec.lease_duration_seconds?);
        let is_held = !holder.is_empty() && now.duration_since(self.spec.renew_time?) <= duration;
        is_held.then_some(holder)
    }
}
