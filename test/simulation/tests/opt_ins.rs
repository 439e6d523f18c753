//! Runs whose sets opt in.

use std::process::Command;

use simulation::plan::{Plan, of_opt_in_seed, of_seed};

fn simulate(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_simulate"))
        .args(arguments)
        .output()
        .expect("the program starts");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}");
    printed
}

#[test]
fn seeds_break_no_rule_and_repeat() {
    simulate(&["seeds", "--opt-ins", "--count", "6"]);
    let again = ["run", "--opt-ins-seed", "3", "--print", "requests"];
    let first = simulate(&again);
    assert!(first.lines().count() > 100, "the seed does nothing");
    assert_eq!(first, simulate(&again));
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
