//! kubectl sessions against the shipped programs: output and exit codes.
//!
//! They need kubectl, so they are built only with the feature `kubectl`: `make test-e2e`.

use std::collections::BTreeSet;
use std::path::Path;

use conformance::kubectl::{Programs, run_session, script};

/// Defines a test for each session, named after its file.
macro_rules! sessions {
    ($($name:ident),* $(,)?) => {
        const SESSIONS: &[&str] = &[$(stringify!($name)),*];

        $(
            #[test]
            fn $name() {
                let text = include_str!(concat!("sessions/", stringify!($name), ".session"));
                prints_what_it_should(text);
            }
        )*
    };
}

sessions! {
    applying,
    changing,
    creating,
    deleting,
    draining,
    reading,
    refusing,
    rollouts,
}

fn prints_what_it_should(text: &str) {
    let session = script::parse(text).unwrap_or_else(|error| panic!("{error:#}"));
    let programs = Programs::find(None, None, None).unwrap_or_else(|error| panic!("{error:#}"));
    let report = run_session(&session, &programs).unwrap_or_else(|error| panic!("{error:#}"));
    let failed: Vec<String> = report
        .failed
        .iter()
        .map(|verdict| format!("$ {}\n  {}", verdict.id, verdict.differences.join("\n  ")))
        .collect();
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
    assert!(report.passed > 0);
}

#[test]
fn every_session_has_a_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubectl/sessions");
    let there: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let run: BTreeSet<String> = SESSIONS
        .iter()
        .map(|name| format!("{name}.session"))
        .collect();
    assert_eq!(there, run);
}
