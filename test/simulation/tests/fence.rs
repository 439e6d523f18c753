//! Runs with a fence, next to a built-in controller.

mod program;

use program::{check_repetition, simulate};
use simulation::judges::judge;
use simulation::plan::{
    Action, Fence, FencePart, PartState, Plan, SetSpec, Settings, Span, of_fence_seed,
};
use simulation::record::Record;
use simulation::run::run;

/// Two instances, and API servers that apply the label and the policies within 1.1 s.
fn settings() -> Settings {
    Settings {
        instances: 2,
        fence: Some(Fence {
            lag: Span(0, 1_100),
            built_in: 1,
        }),
        ..Settings::default()
    }
}

/// Runs a plan that breaks no rule.
fn played(plan: &Plan) -> Record {
    let record = run(plan);
    assert_eq!(judge(plan, &record).violations, []);
    record
}

/// Number of pods that the instances and the built-in controller created.
fn created(plan: &Plan, record: &Record) -> [usize; 2] {
    [false, true].map(|is_built_in| {
        let created = record.requests.iter().filter(|it| {
            let is_own = plan.settings.is_built_in(it.process.instance) == is_built_in;
            let stored = it.processed.is_some_and(|it| it.code == 201);
            is_own && it.resource == "pods" && stored
        });
        created.count()
    })
}

fn web(replicas: u32) -> Action {
    Action::Create(SetSpec {
        replicas,
        ..SetSpec::default()
    })
}

#[test]
fn rollout_changes_hands_in_its_middle() {
    let served = |served| Action::Label { served };
    let plan = Plan::new(1, settings())
        .at(1_000, web(5))
        .at(60_000, Action::image("b"))
        .at(65_000, served(true))
        .at(120_000, Action::image("c"))
        .at(125_000, served(false));
    let record = played(&plan);
    let [ours, built_in] = created(&plan, &record);
    assert_eq!(ours + built_in, 15, "each pod is made once for a revision");
    assert!(ours > 2 && built_in > 5, "{ours} {built_in}");
}

#[test]
fn lost_policy_stops_the_instances() {
    for part in FencePart::ALL {
        let set = |state| Action::Part { part, state };
        let plan = Plan::new(2, settings())
            .at(0, Action::Label { served: true })
            .at(5_000, web(2))
            .at(60_000, set(PartState::Open))
            .at(70_000, Action::scale(4))
            .at(90_000, set(PartState::Shipped))
            .at(120_000, Action::scale(6));
        let record = played(&plan);
        let [ours, built_in] = created(&plan, &record);
        assert_eq!(ours + built_in, 6, "{part:?}");
        // Without the fence the built-in controller goes on; without the mirror neither does.
        let is_mirror = matches!(part, FencePart::Mirror | FencePart::MirrorBinding);
        assert_eq!(built_in, if is_mirror { 0 } else { 2 }, "{part:?}");
    }
}

#[test]
fn seeds_break_no_rule_and_repeat() {
    simulate(&["seeds", "--fence", "--count", "4"]);
    check_repetition(&["run", "--fence-seed", "3"]);
}

#[test]
fn plans_with_a_fence_survive_their_text() {
    let plan = of_fence_seed(5);
    let read = Plan::from_json(&plan.to_json());
    assert_eq!(read.expect("a plan"), plan);
}
