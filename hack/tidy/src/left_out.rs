//! Markers of integration tests that need the embedded control plane.
//!
//! Such tests skip themselves if the environment selects a real API server.

use crate::{Findings, repository::SourceFile};

/// Folder of these tests.
const FOLDER: &str = "test/integration/tests/";
/// Folder of tests that always start an embedded control plane.
const ALWAYS_EMBEDDED: &str = "test/integration/tests/api_server/";
/// Calls that a real API server does not support.
const NEEDS: [&str; 4] = [".faults()", ".mark()", ".plane()", ".audit()"];

/// Finds tests that would fail on a real API server.
pub fn check(files: &[SourceFile]) -> Findings {
    let mut findings = Findings::new();
    for file in files {
        if !file.path.starts_with(FOLDER) || file.path.starts_with(ALWAYS_EMBEDDED) {
            continue;
        }
        // Formatted code: a function ends with a brace at the line's start.
        for function in file.text.split("\n}\n").filter(|text| is_test(text)) {
            let body = function.rsplit("#[tokio::test").next().unwrap_or_default();
            let needed = NEEDS.iter().find(|need| body.contains(*need));
            if let Some(need) = needed
                && !body.contains("embedded_only!")
            {
                let name = body
                    .split("fn ")
                    .nth(1)
                    .and_then(|rest| rest.split('(').next());
                findings.push(format!(
                    "{}: {} calls {need}, unsupported by a real API server: begin it with embedded_only!",
                    file.path,
                    name.unwrap_or("a test")
                ));
            }
        }
    }
    findings
}

fn is_test(text: &str) -> bool {
    text.contains("#[tokio::test")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = "#[tokio::test]\nasync fn a_b() {\n    stage.faults();\n}\n";

    #[test]
    fn unmarked_tests_with_faults_are_found() {
        let found = check(&[SourceFile::new("test/integration/tests/x/a.rs", TEST)]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("a_b calls .faults()"), "{found:?}");
    }

    #[test]
    fn marked_tests_and_other_folders_pass() {
        let said = TEST.replace(
            "    stage",
            "    integration::embedded_only!(\"x\");\n    stage",
        );
        let files = [
            SourceFile::new("test/integration/tests/x/a.rs", &said),
            SourceFile::new("test/integration/tests/api_server/a.rs", TEST),
            SourceFile::new("test/e2e/tests/a.rs", TEST),
            SourceFile::new(
                "test/integration/tests/b.rs",
                "fn c() {\n    x.faults();\n}\n",
            ),
        ];
        assert_eq!(check(&files), Findings::new());
    }
}
