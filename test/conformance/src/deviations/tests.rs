//! Tests of the rules' strictness; the model's tests cover their content.

use serde_json::{Value, json};

use super::*;
use crate::model::tests::recorded;

/// One in this many recorded cases is tested.
const STRIDE: usize = 5;

#[test]
fn apply_restores_expectations_that_contain_a_deviation() {
    let mut altered_count = 0;
    for line in recorded().iter().step_by(STRIDE) {
        let case = Case::parse(line).unwrap();
        let product = run(&case, Rules::PRODUCT).unwrap();
        let recorded = case.expected().unwrap();
        if product == recorded {
            continue;
        }
        altered_count += 1;
        let (expected, names) = apply(&case, product.clone());
        assert_ne!(expected, product, "{}", case.id);
        assert!(names.is_empty());
        let (expected, names) = apply(&case, recorded);
        assert_eq!(expected, product);
        assert!(!names.is_empty(), "{}", case.id);
    }
    assert!(altered_count > 15, "only {altered_count} cases deviate");
}

/// Rules that apply to the first recorded case after a change, with the model's outcome of
/// upstream as the recording.
fn names_after(change: impl FnOnce(&mut Value)) -> Vec<&'static str> {
    let mut case: Value = serde_json::from_str(&recorded()[0]).unwrap();
    change(&mut case);
    let case = Case::parse(&case.to_string()).unwrap();
    let reference = run(&case, Rules::UPSTREAM).unwrap();
    let mut names = apply(&case, reference).1;
    // The first case deletes a pod.
    let before = names.len();
    names.retain(|name| *name != "deletions-name-objects");
    assert!(names.len() < before);
    names
}

#[test]
fn rules_without_effect_are_not_named() {
    assert!(names_after(|_| {}).is_empty());
}

#[test]
fn stored_conditions_have_their_own_rule() {
    let names = names_after(|case| {
        let conditions = json!([{"type": "Known", "status": "True", "lastTransitionTime": "2026-03-01T10:00:00Z"}]);
        case["objects"][0]["status"]["conditions"] = conditions;
    });
    assert_eq!(names, ["conditions-of-others"]);
}

#[test]
fn unknown_members_have_their_own_rule() {
    let names = names_after(|case| {
        case["objects"][0]["spec"]["template"]["spec"]["futureMember"] = json!("x");
    });
    assert_eq!(names, ["unknown-members"]);
}
