//! Leader election: of several processes, the one that holds a lease works, the others wait.
//!
//! The lease is a `Lease` of the API server, changed by compare-and-swap on its version only, with
//! the fields, the numbers and the timing of client-go, so that candidates written in Go and with
//! this crate compete for the same lease. Whether somebody else's lease has run out is judged by
//! how long ago its last change was *seen*, never by the times that stand in it: clocks that differ
//! from machine to machine do no harm.
//!
//! A [`LeaderElector`] runs a future while it leads and drops it when it doesn't any more. Its
//! [`Fence`](crate::fence::Fence) keeps writes from starting once the time for which the lease was last renewed is over,
//! even in a process that was suspended and doesn't know yet; its [`LeaderHealth`] tells whether a
//! leader still renews its lease.
//!
//! Upstream: `client-go/tools/leaderelection`.

pub use config::{
    ConfigError, JITTER_FACTOR, LEASE_DURATION_DEFAULT, LeaderElectionConfig,
    RENEW_DEADLINE_DEFAULT, RETRY_PERIOD_DEFAULT,
};
pub use elector::{ElectorParts, LeaderElector};
pub use health::LeaderHealth;
pub use lock::{LeaseLock, LeaseName};
pub use metrics::{LeaderElectionMetrics, NoopLeaderElectionMetrics};
pub use record::LeaderElectionRecord;
pub use run::{Ended, Lost};

mod config;
mod elector;
mod health;
mod lock;
mod metrics;
mod record;
mod run;

#[cfg(test)]
mod tests;
