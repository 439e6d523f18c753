//! The program under test.

use std::process::Command;

/// Runs it in a separate process, and returns everything that it prints. Fails unless it succeeds.
pub(crate) fn simulate(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_simulate"))
        .args(arguments)
        .output()
        .expect("the program starts");
    let printed = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{arguments:?}: {printed}");
    printed
}

/// Fails unless this run does something, and the same in two processes.
pub(crate) fn check_repetition(run: &[&str]) {
    let run = [run, &["--print", "requests"]].concat();
    let first = simulate(&run);
    assert!(first.lines().count() > 100, "{run:?} does nothing");
    assert_eq!(first, simulate(&run), "{run:?}");
}
