//! Growth of claims: existing claims get the sizes that their set asks for.
//!
//! ```text
//! sizes, cached claims --> ClaimState of each --> Turn: the next pods' claims --> live read, write
//!                                             --> Growth: condition, awaited claims, next attempt
//! ```
//!
//! Each sync compares all claims with the sizes, so it doesn't matter which change came when. A claim
//! only ever grows, and only its request for storage is written.

mod attempt;
pub mod condition;
mod context;
mod grow;
mod refusals;
mod restart;
mod state;

#[cfg(test)]
mod tests;

pub(crate) use context::Context;
pub(crate) use grow::grow;
pub use grow::{AwaitedClaim, Growth, Unfinished};
pub use refusals::ClaimRefusals;
pub(crate) use restart::{awaits_restart, due};
pub use state::ClaimState;
