//! Tests that a plan gives the same run in every process.

use std::process::Command;

/// Runs a seed in a separate process and returns everything that it prints.
fn run(seed: u64) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_simulate"))
        .args(["run", "--print", "requests", "--seed", &seed.to_string()])
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "seed {seed}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn two_processes_do_the_same() {
    for seed in [3, 1_004, 123_456_789] {
        let first = run(seed);
        assert!(first.lines().count() > 100, "seed {seed} does nothing");
        assert_eq!(first, run(seed), "seed {seed}");
    }
}

#[test]
fn other_seeds_do_something_else() {
    let trace = |seed| {
        let printed = run(seed);
        printed.lines().last().unwrap_or_default().to_owned()
    };
    assert_ne!(trace(3), trace(4));
}
