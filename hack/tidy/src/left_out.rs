//! Integration tests that need the embedded control plane say so, so that they are left out where the
//! environment chooses a real API server.

use crate::{Findings, repository::SourceFile};

/// Where these tests are.
const FOLDER: &str = "test/integration/tests/";
/// Tests of a folder that start an embedded control plane of their own wherever they run.
const ALWAYS_EMBEDDED: &str = "test/integration/tests/api_server/";
/// What a real API server can't do.
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
                    "{}: {} calls {need}, which a real API server can't do: begin it with embedded_only!",
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
    fn a_test_that_needs_faults_must_say_so() {
        let found = check(&[SourceFile::new("test/integration/tests/x/a.rs", TEST)]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("a_b calls .faults()"), "{found:?}");
    }

    #[test]
    fn other_tests_and_other_folders_pass() {
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
