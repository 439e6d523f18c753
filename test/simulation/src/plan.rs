//! Plans: everything that happens in a run, as data.

mod action;
mod fault;
mod fence;
mod generate;
pub mod opt_ins;
mod set_spec;
mod settings;
mod words;

use serde::{Deserialize, Serialize};

pub use action::{Action, PodEnd, RestoredOwner, Trigger};
pub use fault::{Fault, FaultRequests, WatchFault};
pub use fence::{FencePart, PartState};
pub use generate::{of_fence_seed, of_opt_in_seed, of_seed};
pub use set_spec::{Cascade, ClaimRetention, MaxUnavailable, Retain, SetSpec, UpdateMode};
pub use settings::{
    BUILT_IN_LEASE, Fence, LEASE, LEASE_NAMESPACE, LeaseTimes, Millis, OptIns, Settings, Span,
};

/// Everything that happens in a run. The same plan always gives the same run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plan {
    /// The seed of names, delays and latencies.
    pub seed: u64,
    /// The environment.
    pub settings: Settings,
    /// The actions of users and the faults, in the order of time.
    pub steps: Vec<Step>,
}

/// Something that happens at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// The moment.
    pub at: Trigger,
    /// The action.
    pub action: Action,
}

impl Plan {
    /// Creates a plan without steps.
    pub fn new(seed: u64, settings: Settings) -> Self {
        Self {
            seed,
            settings,
            steps: Vec::new(),
        }
    }

    /// Adds a step at a time in milliseconds after the start.
    #[must_use]
    pub fn at(mut self, millis: u64, action: Action) -> Self {
        self.steps.push(Step {
            at: Trigger::Time(Millis(millis)),
            action,
        });
        self
    }

    /// Adds a step at the `nth` write of the controllers, counted from 1.
    #[must_use]
    pub fn at_write(mut self, nth: u64, action: Action) -> Self {
        self.steps.push(Step {
            at: Trigger::Write(nth),
            action,
        });
        self
    }

    /// Reads a plan from its JSON text.
    ///
    /// # Errors
    ///
    /// The text is not a plan.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Returns the plan as JSON text.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Returns the time of the last timed step.
    pub fn end(&self) -> Millis {
        let times = self.steps.iter().filter_map(|step| match step.at {
            Trigger::Time(at) => Some(at),
            Trigger::Write(_) => None,
        });
        times.max().unwrap_or_default()
    }
}
