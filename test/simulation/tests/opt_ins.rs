//! Runs whose sets opt in.

mod program;

use program::{check_repetition, simulate};
use simulation::plan::{Plan, of_opt_in_seed, of_seed};

#[test]
fn seeds_break_no_rule_and_repeat() {
    simulate(&["seeds", "--opt-ins", "--count", "6"]);
    check_repetition(&["run", "--opt-ins-seed", "3"]);
}

#[test]
fn plans_with_opt_ins_survive_their_text() {
    let plan = of_opt_in_seed(5);
    let read = Plan::from_json(&plan.to_json());
    assert_eq!(read.expect("a plan"), plan);
}

/// The text of a plan without opt-ins names none of them, so it stays as it was.
#[test]
fn plans_without_opt_ins_name_none() {
    for seed in 1..50 {
        let text = of_seed(seed).to_json();
        assert!(!text.contains("optIns"), "seed {seed}");
        assert!(!text.contains("annotations"), "seed {seed}");
    }
}
