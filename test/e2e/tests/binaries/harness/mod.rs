//! What the tests share: the programs, processes that never outlive a test, and a view of the API.

mod api;
mod history;
mod plane;
mod process;
mod programs;
mod session;

pub(crate) use api::{Api, Kind};
pub(crate) use history::History;
pub(crate) use plane::{Plane, controller_arguments};
pub(crate) use process::{Finished, PATIENCE, Process, Signal};
pub(crate) use programs::{Programs, root};
pub(crate) use session::Session;
