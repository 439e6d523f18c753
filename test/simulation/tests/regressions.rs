//! Plans that found a bug once: each runs in a process of its own and breaks no rule.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;
use simulation::plan::Plan;

/// A file in `regressions`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Regression {
    /// The bug.
    found: String,
    /// The smallest plan that found it.
    plan: Plan,
}

#[test]
fn no_bug_comes_back() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let mut files = 0;
    for entry in fs::read_dir(folder).expect("the folder exists") {
        let path = entry.expect("readable").path();
        let text = fs::read_to_string(&path).expect("readable");
        let name = path.display();
        let regression: Regression =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        files += 1;
        let plan = std::env::temp_dir().join(format!("regression-{}.json", std::process::id()));
        fs::write(&plan, regression.plan.to_json()).expect("writable");
        let output = Command::new(env!("CARGO_BIN_EXE_simulate"))
            .args(["run", "--plan"])
            .arg(&plan)
            .output()
            .expect("the program starts");
        fs::remove_file(&plan).expect("removable");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{name}: {} is back:\n{printed}",
            regression.found
        );
    }
    assert!(files > 0);
}
