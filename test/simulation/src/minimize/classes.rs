//! Classes of steps: those of a kind, those on a set.

use std::collections::BTreeSet;

use crate::plan::{Action, Plan, Step, Trigger};

/// Returns the plan without each class of steps.
pub(super) fn candidates(plan: &Plan) -> Vec<Plan> {
    let sets: BTreeSet<&str> = plan.steps.iter().filter_map(created).collect();
    let classes = plan.steps.iter().flat_map(|step| classes_of(step, &sets));
    let classes: BTreeSet<String> = classes.collect();
    let without = classes.iter().map(|class| {
        let mut smaller = plan.clone();
        let is_other = |step: &Step| !classes_of(step, &sets).contains(class);
        smaller.steps.retain(is_other);
        smaller
    });
    without.collect()
}

fn created(step: &Step) -> Option<&str> {
    match &step.action {
        Action::Create(spec) => Some(&spec.name),
        _ => None,
    }
}

/// Returns the names of a step's classes. They sort by their size: all faults, those of writes,
/// sets, kinds.
fn classes_of(step: &Step, sets: &BTreeSet<&str>) -> Vec<String> {
    let action = serde_json::to_value(&step.action).unwrap_or_default();
    let mut classes = Vec::new();
    // The JSON of an action or a fault is its kind alone, or the kind with its values.
    let kind = |value: &serde_json::Value| {
        let keys = value.as_object().and_then(|it| it.keys().next());
        let name = keys.map(String::as_str).or(value.as_str());
        name.unwrap_or_default().to_owned()
    };
    if let Action::Fault { .. } = &step.action {
        classes.push("0 faults".to_owned());
        let fault = action.pointer("/fault/fault").map(kind);
        classes.push(format!("3 fault {}", fault.unwrap_or_default()));
    } else {
        classes.push(format!("3 action {}", kind(&action)));
    }
    if let Trigger::Write(_) = step.at {
        classes.push("1 writes".to_owned());
    }
    let text = |key: &str| {
        let values = action.as_object().and_then(|it| it.values().next());
        values.and_then(|it| it.get(key)).and_then(|it| it.as_str())
    };
    let pod = text("pod").and_then(|it| it.rsplit_once('-'));
    let claim = text("claim").and_then(|it| it.rsplit_once('-'));
    let owned = sets.iter().filter(|set| {
        created(step) == Some(**set)
            || text("set") == Some(**set)
            || pod.is_some_and(|(owner, _)| owner == **set)
            || claim.is_some_and(|(start, _)| start.ends_with(&format!("-{set}")))
    });
    classes.extend(owned.map(|set| format!("2 set {set}")));
    classes
}
