//! Leader election: the process that holds a lease works, the others wait.
//!
//! The lease is a `Lease` object, changed only by compare-and-swap on its version. Fields,
//! durations and timing are those of client-go, so candidates written in Go can compete for the
//! same lease. A rival's lease expires a lease duration after its last change was *seen*. The times
//! in the lease don't matter, so clock skew does no harm.
//!
//! A [`LeaderElector`] runs a future while it leads and drops it when it loses the lease. Its
//! [`Fence`](crate::fence::Fence) blocks writes after the renew deadline, even in a process that
//! was suspended and hasn't noticed. Its [`LeaderHealth`] reports whether a leader still renews its
//! lease.
//!
//! Upstream: `client-go/tools/leaderelection`.

pub use config::{
    ConfigError, JITTER_FACTOR, LEASE_DURATION_DEFAULT, LeaderElectionConfig,
    RENEW_DEADLINE_DEFAULT, RETRY_PERIOD_DEFAULT,
};
pub use elector::{ElectorParts, Ended, LeaderElector, Lost};
pub use health::LeaderHealth;
pub use lock::{LeaseLock, LeaseName};
pub use metrics::{LeaderElectionMetrics, NoopLeaderElectionMetrics};
pub use record::LeaderElectionRecord;

mod candidate;
mod config;
mod elector;
mod health;
mod lock;
mod metrics;
mod record;
mod shared;

#[cfg(test)]
mod tests;
