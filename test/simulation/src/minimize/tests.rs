//! Tests of the minimizer with oracles that know the culprit.

use std::convert::Infallible;

use super::{Oracle, Pass, minimize};
use crate::plan::{
    Action, Fault, FaultRequests, MaxUnavailable, Millis, Plan, SetSpec, Settings, Span, Trigger,
};

/// An oracle that runs nothing.
struct Stub<F> {
    fails: F,
    asked: usize,
}

impl<F: Fn(&Plan) -> bool> Oracle for Stub<F> {
    type Error = Infallible;

    fn first_failing(&mut self, candidates: &[Plan]) -> Result<Option<usize>, Infallible> {
        let found = candidates.iter().position(&self.fails);
        self.asked += found.map_or(candidates.len(), |found| found + 1);
        Ok(found)
    }
}

fn minimal(plan: &Plan, fails: impl Fn(&Plan) -> bool) -> (Plan, usize) {
    assert!(fails(plan), "the plan fails at first");
    let mut stub = Stub { fails, asked: 0 };
    let Ok(found) = minimize(plan.clone(), &mut stub);
    (found, stub.asked)
}

fn set(name: &str) -> SetSpec {
    SetSpec {
        name: name.to_owned(),
        replicas: 5,
        claims: 2,
        parallel: true,
        max_unavailable: Some(MaxUnavailable::Percent("30%".to_owned())),
        ..SetSpec::default()
    }
}

fn drop_requests(percent: u32) -> Fault {
    Fault::Drop(FaultRequests {
        percent,
        ..FaultRequests::default()
    })
}

fn large_plan() -> Plan {
    let settings = Settings {
        instances: 3,
        lag: Span(0, 30_000),
        resync: Some(300),
        ..Settings::default()
    };
    let mut plan = Plan::new(99, settings)
        .at(1_234, Action::Create(set("web")))
        .at(2_345, Action::Create(set("db")))
        .at_write(17, Action::fault(Fault::CrashBefore, 0));
    for nth in 0_u32..40 {
        let at = 10_000 + u64::from(nth) * 7_001;
        plan = match nth % 4 {
            0 => plan.at(at, Action::scale(nth % 6)),
            1 => plan.at(at, Action::delete_pod(nth % 3)),
            2 => plan.at(at, Action::image("b")),
            _ => plan.at(at, Action::fault(drop_requests(50), 61_234)),
        };
    }
    plan
}

#[test]
fn whole_classes_are_dropped_before_single_steps() {
    let plan = large_plan();
    let found = Pass::Classes.candidates(&plan);
    let sizes: Vec<usize> = found.iter().map(|it| it.steps.len()).collect();
    // All faults, those of writes, the sets `db` and `web`, then each kind of action and fault.
    assert_eq!(sizes, [32, 42, 42, 12, 41, 33, 33, 33, 42, 33]);
}

#[test]
fn steps_are_dropped_in_runs() {
    let plan = large_plan();
    let sizes = |count: usize| -> Vec<usize> {
        let found = Pass::Steps(count).candidates(&plan);
        found.iter().map(|it| it.steps.len()).collect()
    };
    assert_eq!(sizes(20), [23, 23, 40]);
    assert_eq!(sizes(1).len(), 43);
    assert_eq!(
        Pass::Steps(1).candidates(&Plan::new(1, Settings::default())),
        []
    );
}

#[test]
fn passes_halve_the_steps() {
    let steps = |count| Pass::all(count).into_iter();
    let only: Vec<usize> = steps(9)
        .filter_map(|pass| match pass {
            Pass::Steps(count) => Some(count),
            _ => None,
        })
        .collect();
    assert_eq!(only, [4, 2, 1]);
    assert_eq!(steps(0).count(), 3);
}

#[test]
fn two_steps_that_belong_together_are_left() {
    let (found, asked) = minimal(&large_plan(), |plan| {
        let creates = |it: &Action| matches!(it, Action::Create(it) if it.name == "web");
        let deletes = |it: &Action| *it == Action::delete_pod(1);
        let has = |is: &dyn Fn(&Action) -> bool| plan.steps.iter().any(|step| is(&step.action));
        has(&creates) && has(&deletes)
    });
    let spec = SetSpec {
        replicas: 0,
        ..SetSpec::default()
    };
    let expected = Settings {
        latency: Span(1, 1),
        lag: Span(0, 0),
        workers: 1,
        pod_start: Span(100, 100),
        pod_ready: Span(100, 100),
        pod_stop: Span(100, 100),
        restart: Span(1_000, 1_000),
        ..Settings::default()
    };
    let spec = SetSpec { grace: 0, ..spec };
    let expected = Plan::new(1, expected)
        .at(0, Action::Create(spec))
        .at(0, Action::delete_pod(1));
    assert_eq!(found, expected);
    assert!(asked < 400, "{asked} runs");
}

#[test]
fn values_are_simplified_while_the_violation_remains() {
    let (found, _) = minimal(&large_plan(), |plan| {
        let slow = plan.settings.lag.1 >= 20_000 && plan.settings.instances >= 2;
        let fault = plan.steps.iter().any(|step| match &step.action {
            Action::Fault {
                fault: Fault::Drop(_),
                time: Millis(time),
            } => *time >= 5_000,
            _ => false,
        });
        slow && fault
    });
    assert_eq!(found.settings.instances, 2);
    assert_eq!(found.settings.lag, Span(0, 30_000));
    let [step] = &found.steps[..] else {
        panic!("one step: {found:?}");
    };
    assert_eq!(step.at, Trigger::Time(Millis(0)));
    let fault = drop_requests(100);
    let rest = Action::fault(fault, 5_000);
    assert_eq!(step.action, rest, "shorter and without chance");
}

#[test]
fn plan_that_cannot_shrink_stays() {
    let plan = large_plan();
    let (found, _) = minimal(&plan, |it| *it == plan);
    assert_eq!(found, plan);
}
