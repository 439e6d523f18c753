//! The environments of scenarios, and the parts that their plans share.

use crate::plan::{Action, Fault, LeaseTimes, Plan, SetSpec, Settings, Span, WatchFault};

/// The environment of most scenarios: one instance, pods that need the same time each, and rare
/// renewals of the lease, which keep the runs short.
pub(super) fn settings() -> Settings {
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
pub(super) fn crashing() -> Settings {
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
pub(super) fn pair() -> Settings {
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
pub(super) fn begin(settings: Settings, spec: &SetSpec) -> Plan {
    Plan::new(1, settings).at(0, Action::Create(spec.clone()))
}

/// The same plan for an ordered and for a parallel set.
pub(super) fn both(plan: impl Fn(bool) -> Plan) -> Vec<Plan> {
    [false, true].into_iter().map(plan).collect()
}

/// Hides the events of a resource from all instances, or of all resources.
pub(super) fn freeze(resource: Option<&str>, millis: u64) -> Action {
    watch(resource, WatchFault::Freeze, millis)
}

/// Disturbs the watches of a resource, or of all resources.
pub(super) fn watch(resource: Option<&str>, watch: WatchFault, millis: u64) -> Action {
    let fault = Fault::Watch {
        instance: None,
        resource: resource.map(str::to_owned),
        watch,
    };
    Action::fault(fault, millis)
}
