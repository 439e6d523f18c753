//! The lease: its holders, and the times in which each of them may start writes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::agent::Process;
use crate::plan::{LEASE, LeaseTimes};
use crate::record::{Record, is_lease_write};

/// The lease in a run.
pub(super) struct Leases {
    /// The holder after each write of the lease, with the time of the write.
    holders: Vec<(Duration, String)>,
    /// The renewals of each process: the times of their responses and requests.
    renewals: BTreeMap<Process, Vec<(Duration, Duration)>>,
    /// Time after the start of a renewal within which its holder may start writes.
    window: Duration,
}

impl Leases {
    pub(super) fn read(record: &Record, times: LeaseTimes) -> Self {
        let holders = record.commits.iter().filter_map(|commit| {
            let key = &commit.entry.object.key;
            if &*key.storage != "leases" || &*key.name != LEASE {
                return None;
            }
            let value = commit.entry.object.draft().to_value();
            let holder = value.pointer("/spec/holderIdentity");
            let holder = holder.and_then(Value::as_str).unwrap_or_default();
            Some((commit.at, holder.to_owned()))
        });
        let mut renewals: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for request in record.requests.iter().filter(|it| is_lease_write(it)) {
            let is_ok = request.status.is_some_and(|status| status < 300);
            if let Some(answered) = request.answered.filter(|_| is_ok) {
                let renewals = renewals.entry(request.process).or_default();
                renewals.push((answered, request.sent));
            }
        }
        for renewals in renewals.values_mut() {
            renewals.sort_unstable();
        }
        // A tenth of the lease remains for the delivery of writes.
        let lease = Duration::from_secs(times.lease);
        let window = Duration::from_secs(times.renew).min(lease / 10 * 9);
        Self {
            holders: holders.collect(),
            renewals,
            window,
        }
    }

    /// Returns the time until which a process may start writes, as it knew at a time.
    pub(super) fn writes_until(&self, process: Process, at: Duration) -> Option<Duration> {
        let renewals = self.renewals.get(&process)?;
        let known = renewals.partition_point(|(answered, _)| *answered <= at);
        let (_, sent) = renewals.get(known.checked_sub(1)?)?;
        Some(*sent + self.window)
    }

    /// Reports whether a process might write during all of this time.
    pub(super) fn allow(&self, process: Process, from: Duration, to: Duration) -> bool {
        // A renewal at the same moment may have been later.
        let just_before = from.saturating_sub(Duration::from_nanos(1));
        let until = self.writes_until(process, just_before);
        let Some(mut until) = until.filter(|until| from < *until) else {
            return false;
        };
        let renewals = self.renewals.get(&process).into_iter().flatten();
        for (answered, sent) in
            renewals.filter(|(answered, _)| from <= *answered && *answered <= to)
        {
            if *answered >= until {
                return false;
            }
            until = *sent + self.window;
        }
        to < until
    }

    /// Returns the time at which a process first held the lease.
    pub(super) fn first_held(&self, process: Process) -> Option<Duration> {
        let name = format!("controller-{process}");
        let mut holders = self.holders.iter();
        holders
            .find(|(_, holder)| *holder == name)
            .map(|(at, _)| *at)
    }

    /// Returns the holder at a time.
    pub(super) fn holder_at(&self, at: Duration) -> Option<&str> {
        let known = self.holders.partition_point(|(since, _)| *since <= at);
        let (_, holder) = self.holders.get(known.checked_sub(1)?)?;
        Some(holder)
    }
}
