//! Shared harness: the programs, child processes that never outlive a test, and API clients.

mod api;
mod audit;
mod history;
mod plane;
mod process;
mod proxy;
mod session;
mod sets;

pub(crate) use conformance::programs::{Programs, root};

pub(crate) use api::{Api, Kind};
pub(crate) use audit::{Audit, Entry};
pub(crate) use history::History;
pub(crate) use plane::{Plane, controller_arguments};
pub(crate) use process::{Finished, PATIENCE, Process, Signal};
pub(crate) use proxy::{Proxy, Target};
pub(crate) use session::Session;
pub(crate) use sets::{set, set_with_claims};

/// Builds the programs with the test's own profile.
pub(crate) fn programs() -> Programs {
    conformance::programs::build().unwrap_or_else(|error| panic!("{error:#}"))
}
