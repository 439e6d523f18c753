//! Faults on request: rules that make requests and watches fail in the ways of a real network and
//! server, gates that stop requests, and plans that hold rules as data.
//!
//! Rules act on what clients see and never on what is stored: whatever they do, the objects, the
//! revisions and the order of events stay those of a correct server.

mod action;
mod draw;
mod duration;
mod engine;
mod error;
mod facts;
mod gate;
mod matcher;
mod plan;
mod rule;
mod schedule;
mod strike;

pub use action::FaultAction;
pub use draw::{Count, Delay};
pub use engine::Faults;
pub use error::FaultError;
pub use facts::RequestFacts;
pub use gate::{Gate, GatePoint};
pub use matcher::RequestMatcher;
pub use plan::{FaultPlan, PlanError};
pub use rule::{FaultRule, RuleId};
pub use schedule::Schedule;

pub(crate) use strike::Interrupted;
