//! Plans whose sets opt in: those of the seeds, with annotations, gates, budgets and broken images.

mod growth;
mod in_place;

use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::{Value, json};

use crate::plan::OptIns;
use crate::plan::action::Actions;
use crate::plan::opt_ins::{HOLD_KEY, HOLDS, annotation, choose, hold};
use crate::plan::{Action, Fault, Millis, Plan, SetSpec, Step, Trigger, UpdateMode};
use crate::seed;

/// Values of the annotations, by name. A value listed twice is twice as likely; the last ones of a name
/// can't be used.
const CHOICES: [(&str, &[&str]); 9] = [
    (
        "repair",
        &["evict", "delete", "delete", "evict", "none", "sometimes"],
    ),
    ("repair-after", &["0", "10", "1m", "5m", "1m30s", "soon"]),
    ("conditions", &["true", "true", "true", "false", "yes"]),
    ("progress-deadline", &["30", "2m", "10m", "5m", "0"]),
    ("on-deadline", &["pause", "stall", "revert"]),
    (
        "removal-gate",
        &[GATE, GATE, GATE, HOLD_KEY, "app", "not a key"],
    ),
    ("removal-gate-timeout", &["20", "2m", "0", "never"]),
    ("paused", &["true", "true", "false", "maybe"]),
    (
        "rollout-to",
        &["1", "2", "ordinal=1", "ordinal=3", "0", "half"],
    ),
];

/// The usual gate.
const GATE: &str = "example.com/drained=no";

/// Broken images that work once all faults have ended.
const BAD: [&str; 3] = ["bad", "bad-pull", "bad-crash"];

/// Broken images that never work.
const DEAD: [&str; 3] = ["dead", "dead-pull", "dead-crash"];

/// A kind of action on a set.
type Kind = fn(&str, &mut StdRng) -> Actions;

/// All kinds. A kind listed twice is twice as likely.
const KINDS: [Kind; 16] = [
    opt_in,
    opt_in,
    opt_in,
    opt_out,
    pause,
    pause,
    hold_pods,
    hold_pods,
    gate,
    gate,
    break_image,
    repair,
    repair,
    repair,
    budget,
    unknown,
];

/// Draws the plan of a seed, with opt-ins.
pub fn of_opt_in_seed(seed: u64) -> Plan {
    let mut plan = super::of_seed(seed);
    let mut random = seed::stream(seed, "opt-ins");
    let gates = match random.random_range(0..4) {
        0 => vec![true, false],
        _ => vec![true],
    };
    // Without its gates an instance leaves dead pods as they are.
    let is_dead = gates.len() == 1 && random.random_bool(0.4);
    plan.settings.opt_ins = Some(OptIns {
        gates,
        may_evict: random.random_bool(0.8),
    });
    let broken = if is_dead { DEAD } else { BAD };
    let mut names = BTreeSet::new();
    for step in &mut plan.steps {
        match &mut step.action {
            Action::Create(spec) => {
                names.insert(spec.name.clone());
                annotate(spec, &mut random);
                break_some(&mut spec.image, &broken, &mut random);
            }
            Action::Image { image, .. } => break_some(image, &broken, &mut random),
            _ => {}
        }
    }
    let names: Vec<String> = names.into_iter().collect();
    let end = plan.end();
    plan = growth::add(plan, seed, &names, end);
    for _ in 0..random.random_range(3..40) {
        let (Some(kind), Some(set)) = (KINDS.choose(&mut random), names.choose(&mut random)) else {
            continue;
        };
        let at = random.random_range(0..=end.0);
        for (later, mut action) in kind(set, &mut random) {
            if let Action::Image { image, .. } = &mut action {
                break_some(image, &broken, &mut random);
            }
            plan = plan.at(at + later, action);
        }
    }
    plan = in_place::with_updates(plan, seed, &names);
    if is_dead {
        let end = outages_end(&plan);
        for name in &names {
            for action in correct(name, &mut random) {
                plan = plan.at(end.0 + 1_000, action);
            }
        }
    }
    plan.steps.sort_by_key(|step: &Step| match step.at {
        Trigger::Time(at) => at,
        Trigger::Write(_) => Millis(0),
    });
    plan
}

/// Returns the time after which no step comes and no outage swallows what users do.
fn outages_end(plan: &Plan) -> Millis {
    let outages = plan
        .steps
        .iter()
        .filter_map(|step| match (step.at, &step.action) {
            (
                Trigger::Time(at),
                Action::Fault {
                    fault: Fault::Outage,
                    time,
                },
            ) => Some(Millis(at.0 + time.0)),
            _ => None,
        });
    outages.chain([plan.end()]).max().unwrap_or_default()
}

fn annotate(spec: &mut SetSpec, random: &mut StdRng) {
    let mut annotations = BTreeMap::new();
    for (name, values) in CHOICES {
        if random.random_bool(0.3) {
            let value = values.choose(random).copied().unwrap_or_default();
            annotations.insert(annotation(name), value.to_owned());
        }
    }
    spec.annotations = annotations;
}

/// Replaces a broken image.
fn break_some(image: &mut String, broken: &[&str], random: &mut StdRng) {
    if image == "bad" {
        let chosen = broken.choose(random).copied().unwrap_or("bad");
        chosen.clone_into(image);
    }
}

fn pod(set: &str, random: &mut StdRng) -> String {
    format!("{set}-{}", random.random_range(0..5))
}

fn place(random: &mut StdRng) -> &'static str {
    if random.random_bool(0.5) {
        "labels"
    } else {
        "annotations"
    }
}

fn some_choice(set: &str, random: &mut StdRng) -> Action {
    let (name, values) = CHOICES.choose(random).copied().unwrap_or(("repair", &[]));
    choose(set, name, values.choose(random).copied())
}

fn opt_in(set: &str, random: &mut StdRng) -> Actions {
    vec![(0, some_choice(set, random))]
}

fn opt_out(set: &str, random: &mut StdRng) -> Actions {
    let names = CHOICES.iter().filter(|_| random.random_bool(0.5));
    let names: Vec<&str> = names.map(|(name, _)| *name).collect();
    names
        .into_iter()
        .map(|name| (0, choose(set, name, None)))
        .collect()
}

/// A pause, or a limit in steps, around a rollout.
fn pause(set: &str, random: &mut StdRng) -> Actions {
    let later = random.random_range(1_000..120_000);
    let image = image(set, random);
    let during = random.random_range(0..=later);
    if random.random_bool(0.5) {
        return vec![
            (0, choose(set, "paused", Some("true"))),
            (during, image),
            (later, choose(set, "paused", None)),
        ];
    }
    vec![
        (0, choose(set, "rollout-to", Some("0"))),
        (during, image),
        (later, choose(set, "rollout-to", Some("1"))),
        (later * 2, choose(set, "rollout-to", None)),
    ]
}

fn image(set: &str, random: &mut StdRng) -> Action {
    let images = ["a", "b", "c", "bad"];
    Action::Image {
        set: set.to_owned(),
        image: (*images.choose(random).unwrap_or(&"a")).to_owned(),
    }
}

/// Users hold pods, and lift most of the gates.
fn hold_pods(set: &str, random: &mut StdRng) -> Actions {
    let mut actions = Vec::new();
    for _ in 0..random.random_range(1..5) {
        let (pod, place) = (pod(set, random), place(random));
        actions.push((0, hold(&pod, place, Some(HOLDS))));
        if random.random_bool(0.8) {
            let later = random.random_range(100..240_000);
            let value = *[None, Some("yes")].choose(random).unwrap_or(&None);
            actions.push((later, hold(&pod, place, value)));
        }
    }
    actions
}

/// A gate with held pods, a scale-down or a rollout, and the lifting one by one.
fn gate(set: &str, random: &mut StdRng) -> Actions {
    let mut actions = vec![(0, choose(set, "removal-gate", Some(GATE)))];
    let place = place(random);
    for ordinal in 0..6 {
        let pod = format!("{set}-{ordinal}");
        actions.push((100, hold(&pod, place, Some(HOLDS))));
        let later = random.random_range(1_000..180_000);
        actions.push((later, hold(&pod, place, None)));
    }
    let removal = if random.random_bool(0.7) {
        Action::Scale {
            set: set.to_owned(),
            replicas: random.random_range(0..3),
        }
    } else {
        image(set, random)
    };
    actions.push((200, removal));
    if random.random_bool(0.3) {
        let replicas = random.random_range(2..6);
        let back = Action::Scale {
            set: set.to_owned(),
            replicas,
        };
        actions.push((random.random_range(1_000..60_000), back));
    }
    actions
}

/// A broken image, and its correction.
fn break_image(set: &str, random: &mut StdRng) -> Actions {
    let with = |image: &str| Action::Image {
        set: set.to_owned(),
        image: image.to_owned(),
    };
    let later = random.random_range(1_000..400_000);
    vec![
        (0, with("bad")),
        (later, with(["b", "c"].choose(random).unwrap_or(&"b"))),
    ]
}

/// A set with repair gets a broken image, and later another one, which may be broken as well.
fn repair(set: &str, random: &mut StdRng) -> Actions {
    let method = ["evict", "delete"].choose(random).copied();
    let later = random.random_range(10_000..400_000);
    let mut actions = vec![(0, choose(set, "repair", method))];
    if random.random_bool(0.5) {
        let after = ["0", "10", "1m"].choose(random).copied();
        actions.push((0, choose(set, "repair-after", after)));
    }
    let broken = Action::Image {
        set: set.to_owned(),
        image: "bad".to_owned(),
    };
    actions.extend([(100, broken), (later, image(set, random))]);
    actions
}

/// A disruption budget.
fn budget(set: &str, random: &mut StdRng) -> Actions {
    let number = random.random_range(0..=2);
    let limits = [
        json!({"minAvailable": number}),
        json!({"maxUnavailable": number}),
    ];
    let mut spec = limits.choose(random).cloned().unwrap_or_default();
    spec["selector"] = json!({"matchLabels": {"app": set}});
    if random.random_bool(0.5) {
        spec["unhealthyPodEvictionPolicy"] = Value::from("AlwaysAllow");
    }
    let object = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": set},
        "spec": spec,
    });
    let resource = "poddisruptionbudgets".to_owned();
    vec![(0, Action::CreateObject { resource, object })]
}

fn unknown(set: &str, random: &mut StdRng) -> Actions {
    let later = random.random_range(1_000..60_000);
    vec![
        (0, choose(set, "repiar", Some("evict"))),
        (later, choose(set, "repiar", None)),
    ]
}

/// A correction after which a set with dead pods reaches its spec.
fn correct(set: &str, random: &mut StdRng) -> Vec<Action> {
    let names = [
        "paused",
        "rollout-to",
        "progress-deadline",
        "on-deadline",
        "in-place",
    ];
    let mut actions: Vec<Action> = names
        .into_iter()
        .map(|name| choose(set, name, None))
        .collect();
    let method = ["evict", "delete"].choose(random).copied();
    let after = ["10", "1m", "5m"].choose(random).copied();
    actions.extend([
        choose(set, "repair", method),
        choose(set, "repair-after", after),
        Action::UpdateMode {
            set: set.to_owned(),
            mode: UpdateMode::RollingUpdate,
        },
        Action::Image {
            set: set.to_owned(),
            image: "z".to_owned(),
        },
    ]);
    actions
}
