//! Usage errors, reported before any process starts.

use std::io;
use std::process::{Command, Output};

/// Runs the program with these arguments.
fn run(arguments: &[&str]) -> io::Result<Output> {
    Command::new(env!("CARGO_BIN_EXE_run"))
        .args(arguments)
        .output()
}

#[test]
fn unknown_flag_is_named() {
    let output = run(&["--pods-delay=1s", "web.yaml"]).unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("'--pods-delay'"), "{message}");
}

#[test]
fn missing_manifest_is_one_line() {
    let programs = ["--control-plane=absent", "--controller=absent"];
    let output = run(&[programs[0], programs[1], "--once", "absent/web.yaml"]).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.contains("absent/web.yaml"), "{message}");
}
