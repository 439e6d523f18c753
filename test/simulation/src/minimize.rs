//! Smaller plans: the steps from a failing plan to the reason of its failure.

use serde_json::Value;

use crate::plan::{Action, Millis, Plan, SetSpec, Settings, Step, Trigger};

/// Returns smaller plans, those without most of the steps first. Each is smaller by its number of
/// steps, or by what a step or the settings ask for, so to repeat this comes to an end.
pub fn smaller(plan: &Plan) -> Vec<Plan> {
    let mut plans = without_kinds(plan);
    plans.extend(without_parts(plan));
    plans.extend(simpler_settings(plan));
    plans.extend(simpler_steps(plan));
    plans
}

/// Returns the plan with these steps.
fn with_steps(plan: &Plan, steps: Vec<Step>) -> Plan {
    Plan {
        steps,
        ..plan.clone()
    }
}

/// Drops all steps of a kind.
fn without_kinds(plan: &Plan) -> Vec<Plan> {
    let mut kinds: Vec<String> = plan.steps.iter().map(|step| kind(&step.action)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let without = |dropped: &String| {
        let kept = plan.steps.iter().filter(|it| kind(&it.action) != *dropped);
        with_steps(plan, kept.cloned().collect())
    };
    kinds.iter().map(without).collect()
}

/// Returns the names of an action and its fault.
fn kind(action: &Action) -> String {
    let name = |value: &Value| match value {
        Value::Object(members) => members.keys().next().cloned().unwrap_or_default(),
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    let value = serde_json::to_value(action).unwrap_or_default();
    let fault = value.pointer("/fault/fault").map(name).unwrap_or_default();
    format!("{} {fault}", name(&value))
}

/// Drops half of the steps, then each quarter, and so on to single steps.
fn without_parts(plan: &Plan) -> Vec<Plan> {
    let count = plan.steps.len();
    let mut plans = Vec::new();
    let mut length = count.div_ceil(2);
    while length > 0 {
        for first in (0..count).step_by(length) {
            let dropped = first..first.saturating_add(length);
            let kept = plan.steps.iter().enumerate();
            let kept = kept.filter(|(nth, _)| !dropped.contains(nth));
            plans.push(with_steps(plan, kept.map(|(_, it)| it.clone()).collect()));
        }
        length = if length == 1 { 0 } else { length.div_ceil(2) };
    }
    plans
}

/// Changes that bring settings nearer to those of an undisturbed run.
const SIMPLER_SETTINGS: [fn(&mut Settings); 15] = [
    |it| it.instances = it.instances.min(1),
    |it| it.instances = it.instances.min(2),
    |it| it.workers = 1,
    |it| it.lease = Settings::default().lease,
    |it| it.resync = Settings::default().resync,
    |it| it.latency = Settings::default().latency,
    |it| it.lag = Settings::default().lag,
    |it| it.bookmarks = Settings::default().bookmarks,
    |it| it.max_unavailable = Settings::default().max_unavailable,
    |it| it.pod_start = Settings::default().pod_start,
    |it| it.pod_ready = Settings::default().pod_ready,
    |it| it.pod_stop = Settings::default().pod_stop,
    |it| it.collector_delay = Settings::default().collector_delay,
    |it| it.qps = Settings::default().qps,
    |it| it.restart = Settings::default().restart,
];

fn simpler_settings(plan: &Plan) -> Vec<Plan> {
    let changed = changed_in(&plan.settings, &SIMPLER_SETTINGS).into_iter();
    let with = |settings| Plan {
        settings,
        ..plan.clone()
    };
    changed.map(with).collect()
}

/// Returns what each change makes of a value, if it makes a difference.
fn changed_in<T: Clone + PartialEq>(value: &T, changes: &[fn(&mut T)]) -> Vec<T> {
    let apply = |change: &fn(&mut T)| {
        let mut changed = value.clone();
        change(&mut changed);
        changed
    };
    let all = changes.iter().map(apply);
    all.filter(|changed| changed != value).collect()
}

/// Simplifies one of the steps.
fn simpler_steps(plan: &Plan) -> Vec<Plan> {
    let mut plans = Vec::new();
    for (nth, step) in plan.steps.iter().enumerate() {
        let actions = simpler_actions(&step.action).into_iter();
        let of_action = actions.map(|action| Step {
            at: step.at,
            action,
        });
        let rounded = rounded(step.at).map(|at| Step {
            at,
            action: step.action.clone(),
        });
        for simpler in of_action.chain(rounded) {
            let mut steps = plan.steps.clone();
            steps[nth] = simpler;
            plans.push(with_steps(plan, steps));
        }
    }
    plans
}

/// Returns a moment at a whole second before this one.
fn rounded(at: Trigger) -> Option<Trigger> {
    match at {
        Trigger::Time(Millis(millis)) if millis % 1_000 != 0 => {
            Some(Trigger::Time(Millis(millis / 1_000 * 1_000)))
        }
        _ => None,
    }
}

fn simpler_actions(action: &Action) -> Vec<Action> {
    match action {
        Action::Create(spec) => {
            let simpler = changed_in(spec, &SIMPLER_SETS).into_iter();
            simpler.map(Action::Create).collect()
        }
        Action::Fault { fault, time } if time.0 > 1_000 => vec![Action::Fault {
            fault: fault.clone(),
            time: Millis(time.0 / 2),
        }],
        _ => Vec::new(),
    }
}

/// Changes that make a set plainer.
const SIMPLER_SETS: [fn(&mut SetSpec); 12] = [
    |it| it.replicas = it.replicas.min(1),
    |it| it.replicas = it.replicas.saturating_sub(1),
    |it| it.parallel = false,
    |it| it.update = SetSpec::default().update,
    |it| it.partition = None,
    |it| it.max_unavailable = None,
    |it| it.min_ready_seconds = 0,
    |it| it.claims = it.claims.saturating_sub(1),
    |it| it.retention = SetSpec::default().retention,
    |it| it.start = 0,
    |it| it.history = None,
    |it| it.grace = SetSpec::default().grace,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Fault;

    fn plan() -> Plan {
        let spec = SetSpec {
            replicas: 4,
            claims: 2,
            ..SetSpec::default()
        };
        let settings = Settings {
            instances: 3,
            resync: Some(300),
            ..Settings::default()
        };
        Plan::new(1, settings)
            .at(0, Action::Create(spec))
            .at(10_500, Action::scale(2))
            .at(20_000, Action::fault(Fault::Outage, 90_000))
            .at(30_000, Action::scale(6))
            .at(40_000, Action::image("b"))
    }

    /// Shrinks a plan as long as `fails` holds for a smaller one.
    fn minimized(mut plan: Plan, fails: impl Fn(&Plan) -> bool) -> Plan {
        while let Some(found) = smaller(&plan).into_iter().find(|it| fails(it)) {
            plan = found;
        }
        plan
    }

    #[test]
    fn only_the_needed_steps_stay() {
        let scales_to = |plan: &Plan, wanted| {
            plan.steps
                .iter()
                .any(|step| step.action == Action::scale(wanted))
        };
        let fails = |plan: &Plan| {
            let creates = plan
                .steps
                .iter()
                .any(|it| matches!(it.action, Action::Create(_)));
            creates && scales_to(plan, 2)
        };
        let small = minimized(plan(), fails);
        let one = SetSpec {
            replicas: 0,
            ..SetSpec::default()
        };
        let expected = Plan::new(
            1,
            Settings {
                workers: 1,
                ..Settings::default()
            },
        )
        .at(0, Action::Create(one))
        .at(10_000, Action::scale(2));
        assert_eq!(small, expected);
    }

    #[test]
    fn no_plan_is_offered_twice_or_unchanged() {
        for smaller in smaller(&plan()) {
            assert_ne!(smaller, plan());
        }
    }

    #[test]
    fn minimal_plans_end_the_search() {
        let nothing = Plan::new(
            1,
            Settings {
                workers: 1,
                ..Settings::default()
            },
        );
        assert_eq!(smaller(&nothing), []);
    }
}
