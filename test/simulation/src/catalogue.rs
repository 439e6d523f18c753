//! The catalogue of scenarios: named plans, each with an expectation.
//!
//! Each scenario is a situation that went wrong in a StatefulSet controller or in an operator. Its
//! plans run under all judges. It also names the required situation, so that it can't pass
//! without it, and the required result.

mod api_faults;
mod check;
mod crash_points;
mod issues;
mod leadership;
mod migration;
mod not_played;
mod ownership;
mod pods;
mod rollouts;
mod run_view;
mod scale;
mod staleness;
mod unobserved;
mod volumes;

pub use check::Check;
pub use issues::{ISSUES, IssueStatus};
pub use not_played::{NOT_PLAYED, NotPlayed};
pub use run_view::RunView;

use crate::history::History;
use crate::judges::judge;
use crate::plan::{Action, Fault, LeaseTimes, Plan, SetSpec, Settings, Span, WatchFault};
use crate::run::run;

/// The command that runs a plan.
const REPLAY: &str = "cargo run --locked -q -p simulation -- run";

/// A scenario of the catalogue.
pub struct Scenario {
    /// Its number.
    pub number: u32,
    /// The event.
    pub name: &'static str,
    /// Issues of kubernetes/kubernetes that it is about.
    pub origin: &'static [u32],
    /// Its plans, which are variants of each other.
    pub plans: fn() -> Vec<Plan>,
    /// Checks the situation and the result.
    pub expect: fn(&RunView<'_>, &mut Check),
}

/// All scenarios that are played, in the order of their numbers.
pub fn scenarios() -> Vec<&'static Scenario> {
    let sections: [&[Scenario]; 11] = [
        staleness::SCENARIOS,
        crash_points::SCENARIOS,
        unobserved::SCENARIOS,
        api_faults::SCENARIOS,
        rollouts::SCENARIOS,
        pods::SCENARIOS,
        volumes::SCENARIOS,
        ownership::SCENARIOS,
        leadership::SCENARIOS,
        migration::SCENARIOS,
        scale::SCENARIOS,
    ];
    sections.into_iter().flatten().collect()
}

/// Returns the scenario with this number.
pub fn scenario(number: u32) -> Option<&'static Scenario> {
    scenarios().into_iter().find(|it| it.number == number)
}

impl Scenario {
    /// Runs a variant. A run can be reproduced if it is the first one of its process.
    ///
    /// # Errors
    ///
    /// What went wrong: the violations, the failed expectations, and the plan.
    pub fn play(&self, variant: usize) -> Result<(), String> {
        let Self { number, name, .. } = self;
        let plans = (self.plans)();
        let plan = plans
            .get(variant)
            .ok_or_else(|| format!("scenario {number} has no variant {variant}"))?;
        let record = run(plan);
        let mut check = Check::default();
        for violation in judge(plan, &record).violations {
            check.fail(format!("violation: {violation}"));
        }
        let history = History::read(&record);
        (self.expect)(&RunView::new(variant, plan, &record, &history), &mut check);
        if check.failures().is_empty() {
            return Ok(());
        }
        let failures = check.failures().join("\n");
        let plan = serde_json::to_string(plan).unwrap_or_default();
        let again = format!("{REPLAY} --print table --plan - <<<'{plan}'");
        let origin = self.origin.iter();
        let origin: Vec<String> = origin
            .map(|it| format!("kubernetes/kubernetes#{it}"))
            .collect();
        let origin = origin.join(", ");
        Err(format!(
            "scenario {number}, {name} [{origin}]:\n{failures}\n{again}"
        ))
    }
}

/// The environment of most scenarios: one instance, pods that need the same time each, and rare
/// renewals of the lease, which keep the runs short.
fn settings() -> Settings {
    Settings {
        lease: LeaseTimes {
            lease: 90,
            renew: 60,
            retry: 15,
        },
        pod_start: Span(500, 500),
        pod_ready: Span(1_000, 1_000),
        pod_stop: Span(500, 500),
        restart: Span(2_000, 2_000),
        ..Settings::default()
    }
}

/// The environment of crashes, after which a new process soon leads.
fn crashing() -> Settings {
    Settings {
        lease: LeaseTimes {
            lease: 20,
            renew: 15,
            retry: 10,
        },
        ..settings()
    }
}

/// The environment with two instances that change over quickly.
fn pair() -> Settings {
    Settings {
        instances: 2,
        lease: LeaseTimes {
            lease: 30,
            renew: 20,
            retry: 10,
        },
        ..settings()
    }
}

/// A plan that begins with this set.
fn begin(settings: Settings, spec: &SetSpec) -> Plan {
    Plan::new(1, settings).at(0, Action::Create(spec.clone()))
}

/// The same plan for an ordered and for a parallel set.
fn both(plan: impl Fn(bool) -> Plan) -> Vec<Plan> {
    [false, true].into_iter().map(plan).collect()
}

/// Hides the events of a resource from all instances, or of all resources.
fn freeze(resource: Option<&str>, millis: u64) -> Action {
    watch(resource, WatchFault::Freeze, millis)
}

/// Disturbs the watches of a resource, or of all resources.
fn watch(resource: Option<&str>, watch: WatchFault, millis: u64) -> Action {
    let fault = Fault::Watch {
        instance: None,
        resource: resource.map(str::to_owned),
        watch,
    };
    Action::fault(fault, millis)
}
