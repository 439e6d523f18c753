//! Tests of the shipped programs, from outside.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod account_credentials;
mod crashes;
mod deploy;
mod harness;
mod image;
mod leader_election;
mod logs;
mod make_run;
mod metrics;
mod outages;
#[cfg(feature = "python")]
mod python;
mod refusals;
#[cfg(feature = "release")]
mod release;
mod shards;
mod shutdown;
mod takeover;
