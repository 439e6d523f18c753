//! Tests that a plan gives the same run in every process.

mod program;

use program::{check_repetition, simulate};

#[test]
fn two_processes_do_the_same() {
    for seed in ["3", "1004", "123456789"] {
        check_repetition(&["run", "--seed", seed]);
    }
}

#[test]
fn other_seeds_do_something_else() {
    let trace = |seed| {
        let printed = simulate(&["run", "--seed", seed]);
        printed.lines().last().unwrap_or_default().to_owned()
    };
    assert_ne!(trace("3"), trace("4"));
}
