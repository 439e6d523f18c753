//! Simpler values of steps: the values in the JSON of a plan, of any actions.

use serde_json::{Value, json};

use crate::plan::{Millis, Plan, Step, Trigger};

/// Times in milliseconds that are as short as a reader likes them.
const SHORT: [u64; 6] = [0, 1_000, 5_000, 10_000, 30_000, 60_000];

/// Units in milliseconds that times are rounded to.
const ROUND: [u64; 4] = [60_000, 10_000, 1_000, 100];

/// Values that disappear, by their key.
const OPTIONAL: [&str; 4] = ["partition", "maxUnavailable", "history", "instance"];

/// The usual names, by their key.
const USUAL: [(&str, &str); 4] = [
    ("update", "RollingUpdate"),
    ("cascade", "Background"),
    ("whenDeleted", "Retain"),
    ("whenScaled", "Retain"),
];

/// Returns the plan with each value of its steps simpler.
pub(super) fn candidates(plan: &Plan) -> Vec<Plan> {
    let mut found = shorter_pauses(plan);
    for (nth, step) in plan.steps.iter().enumerate() {
        let with = |step: Step| {
            let mut candidate = plan.clone();
            candidate.steps[nth] = step;
            candidate
        };
        if let Trigger::Time(Millis(at)) = step.at {
            let rounded = rounded(at).into_iter().map(|at| Step {
                at: Trigger::Time(Millis(at)),
                ..step.clone()
            });
            found.extend(rounded.map(with));
        }
        let json = serde_json::to_value(&step.action).unwrap_or_default();
        // A value that an action can't have makes no candidate.
        let actions = simpler("", &json).into_iter().map(serde_json::from_value);
        let steps = actions.filter_map(Result::ok).map(|action| Step {
            at: step.at,
            action,
        });
        found.extend(steps.map(with));
    }
    found.retain(|candidate| candidate != plan);
    found
}

/// Returns rounder times that are earlier.
fn rounded(time: u64) -> Vec<u64> {
    let rounded = ROUND.iter().map(|unit| time / unit * unit);
    let mut rounded: Vec<u64> = rounded.filter(|it| *it < time).collect();
    rounded.dedup();
    rounded
}

/// Returns the plan with a shorter time before each timed step and all later ones.
fn shorter_pauses(plan: &Plan) -> Vec<Plan> {
    let mut found = Vec::new();
    let mut last = 0;
    for step in &plan.steps {
        let Trigger::Time(Millis(at)) = step.at else {
            continue;
        };
        let pause = at.saturating_sub(last);
        for shorter in SHORT.into_iter().filter(|short| *short < pause) {
            let mut candidate = plan.clone();
            for step in &mut candidate.steps {
                if let Trigger::Time(Millis(time)) = &mut step.at
                    && *time >= at
                {
                    *time -= pause - shorter;
                }
            }
            found.push(candidate);
        }
        last = at;
    }
    found
}

/// Returns a value with each of its parts simpler.
fn simpler(key: &str, value: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    if OPTIONAL.contains(&key) && !value.is_null() {
        found.push(Value::Null);
    }
    match value {
        Value::Bool(true) => found.push(json!(false)),
        Value::Number(number) => {
            let number = number.as_u64().unwrap_or_default();
            found.extend(simpler_number(key, number).into_iter().map(Value::from));
        }
        Value::String(text) => {
            let usual = USUAL.iter().find(|(of, _)| *of == key);
            found.extend(usual.map(|(_, name)| json!(name)));
            if text.ends_with('%') {
                found.push(json!(1));
            }
        }
        Value::Array(parts) => {
            for (nth, part) in parts.iter().enumerate() {
                for simpler in simpler(key, part) {
                    let mut parts = parts.clone();
                    parts[nth] = simpler;
                    found.push(Value::Array(parts));
                }
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                for simpler in simpler(name, field) {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), simpler);
                    found.push(Value::Object(fields));
                }
            }
        }
        Value::Null | Value::Bool(false) => {}
    }
    found
}

/// Returns simpler numbers, the simplest first.
fn simpler_number(key: &str, number: u64) -> Vec<u64> {
    let mut found: Vec<u64> = match key {
        // Chance is what makes a plan hard to follow.
        "percent" => return [100].into_iter().filter(|all| *all != number).collect(),
        "time" | "delay" => SHORT.into_iter().chain(rounded(number)).collect(),
        _ => vec![0, 1, number / 2, number.saturating_sub(1)],
    };
    found.retain(|simpler| *simpler < number);
    found.dedup();
    found
}
