//! Fault injection: rules for failing requests, watches and calls of webhooks as a real network and
//! server would, gates that hold requests, and plans with rules as data.
//!
//! Rules affect only the clients' view, never the stored data: objects, revisions and the order of
//! events stay those of a correct server.

mod applied;
mod count;
mod decision;
mod delay;
mod duration;
mod engine;
mod error;
mod facts;
mod gate;
mod lines;
mod matcher;
mod outage;
mod plan;
mod read_view;
mod rule;
mod schedule;
mod view;
mod watch_rule;
mod watch_stream;
mod watches;
mod webhook_rule;

pub use count::Count;
pub use delay::{Delay, ParseDelayError};
pub use engine::Faults;
pub use error::FaultError;
pub use facts::RequestFacts;
pub use gate::{Gate, GatePoint};
pub use matcher::{ACTOR_AGENT_PREFIX, RequestMatcher};
pub use outage::Outage;
pub use plan::{FaultPlan, PlanError};
pub use rule::{FaultAction, FaultRule, RuleId};
pub use schedule::Schedule;
pub use view::{View, ViewRule};
pub use watch_rule::{EventMatcher, UnsoundAction, WatchAction, WatchMoment, WatchRule};
pub use webhook_rule::{WebhookAction, WebhookMatcher, WebhookRule};

pub(crate) use decision::Interrupted;
pub(crate) use read_view::ReadView;
pub(crate) use watch_stream::follow;
pub(crate) use webhook_rule::CalledWebhook;
