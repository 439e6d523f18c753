//! Tests that no recorded regression violates a rule.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use simulation::regression::Regression;

/// Returns the files of the regressions.
fn files() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/regressions");
    let entries = fs::read_dir(folder).expect("the folder can be read");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the entry can be read").path())
        .collect();
    files.sort();
    files
}

#[test]
fn every_file_is_a_regression() {
    let files = files();
    assert!(!files.is_empty(), "there are regressions");
    for file in files {
        let name = file.display();
        assert_eq!(file.extension(), Some("json".as_ref()), "{name}");
        let text = fs::read_to_string(&file).expect("the file can be read");
        let regression = Regression::from_json(&text)
            .unwrap_or_else(|error| panic!("{name} is no regression: {error}"));
        assert!(
            regression.found.ends_with('.'),
            "{name}: `found` must end with a period"
        );
        let rule: Vec<&str> = regression.rule.split('-').collect();
        assert!(
            matches!(rule[..], [_, number] if number.parse::<u32>().is_ok()),
            "{name}: a rule such as R-4, not {}",
            regression.rule
        );
        assert_eq!(
            regression.to_json() + "\n",
            text,
            "{name} is not in the canonical form"
        );
    }
}

#[test]
fn no_regression_breaks_a_rule() {
    for file in files() {
        let name = file.display();
        // Each run has a separate process, as it had when it was found.
        let output = Command::new(env!("CARGO_BIN_EXE_simulate"))
            .args(["run", "--plan"])
            .arg(&file)
            .output()
            .expect("the program starts");
        let text = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}:\n{text}{error}");
    }
}
