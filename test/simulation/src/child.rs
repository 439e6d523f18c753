//! One run in a separate process.

use std::io::Write as _;
use std::process::{Command, Stdio};

use simulation::outcome::Outcome;
use simulation::plan::Plan;

/// Runs a plan in a separate process.
pub(crate) fn in_child(plan: &Plan) -> Result<Outcome, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .args(["run", "--plan", "-", "--print", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start the run: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        // A child that reads nothing reports its own error.
        let _ = input.write_all(plan.to_json().as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(|error| format!("the run failed: {error}"))?;
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("the run ended with {}: {error}", output.status))
}
