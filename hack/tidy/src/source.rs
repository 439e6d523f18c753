//! Rules for the text of each Rust file.

use crate::{Findings, repository::SourceFile};

/// What must not stand in Rust code, and what to do instead. Each is written in two parts so that
/// this file does not hold what it forbids.
const FORBIDDEN: [(&str, &str, &str); 8] = [
    ("FIX", "ME", "finish it or leave it out"),
    ("todo", "!(", "finish it or leave it out"),
    ("unimplemented", "!(", "finish it or leave it out"),
    ("dbg", "!(", "remove it"),
    ("#[ign", "ore", "a test that does not run proves nothing"),
    ("#[should", "_panic", "assert on the error instead"),
    ("#[al", "low(", "use #[expect(lint, reason = \"…\")]"),
    (
        "```ign",
        "ore",
        "examples must compile; use ```no_run or ```text",
    ),
];

/// Types whose `static` would be state that the whole process shares.
const MUTABLE: [&str; 8] = [
    "Mutex", "RwLock", "Atomic", "OnceLock", "OnceCell", "RefCell", "DashMap", "Cell<",
];

/// Checks every Rust file.
pub fn check(files: &[SourceFile]) -> Findings {
    files.iter().flat_map(check_file).collect()
}

fn check_file(file: &SourceFile) -> Findings {
    let mut findings = Findings::new();
    if !file.text.starts_with("//!") {
        findings.push(format!(
            "{}: begin with a //! line that says what the file is",
            file.path
        ));
    }
    for (index, line) in file.text.lines().enumerate() {
        let place = format!("{}:{}", file.path, index + 1);
        for (head, tail, advice) in FORBIDDEN {
            if line.contains(&format!("{head}{tail}")) {
                findings.push(format!("{place}: {head}{tail}: {advice}"));
            }
        }
        if is_mutable_static(line) {
            findings.push(format!(
                "{place}: no process-wide mutable state; pass a handle"
            ));
        }
    }
    findings
}

fn is_mutable_static(line: &str) -> bool {
    let code = line.trim_start();
    let code = code
        .strip_prefix("pub ")
        .or_else(|| code.strip_prefix("pub(crate) "))
        .unwrap_or(code);
    let Some((_, kind)) = code
        .strip_prefix("static ")
        .and_then(|rest| rest.split_once(':'))
    else {
        return false;
    };
    let kind = kind.split('=').next().unwrap_or_default();
    MUTABLE.iter().any(|name| kind.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_header_is_found() {
        assert_eq!(
            check(&[SourceFile::new("x.rs", "//! What it is.\n")]),
            Findings::new()
        );
        assert_eq!(
            check(&[SourceFile::new("x.rs", "use a::b;\n")]),
            ["x.rs: begin with a //! line that says what the file is"]
        );
    }

    #[test]
    fn every_forbidden_text_is_found_with_its_line() {
        for (head, tail, _) in FORBIDDEN {
            let text = format!("//! What it is.\n    {head}{tail}\n");
            let findings = check(&[SourceFile::new("x.rs", &text)]);
            assert_eq!(findings.len(), 1, "{head}{tail}");
            assert!(findings[0].starts_with("x.rs:2: "), "{findings:?}");
        }
    }

    #[test]
    fn a_global_counter_is_found_and_a_global_table_is_not() {
        let counter = "//! x\npub static COUNT: AtomicUsize = AtomicUsize::new(0);\n";
        assert_eq!(check(&[SourceFile::new("x.rs", counter)]).len(), 1);
        let table = "//! x\nstatic TABLE: LazyLock<BTreeMap<u8, u8>> = LazyLock::new(table);\n";
        assert_eq!(check(&[SourceFile::new("x.rs", table)]), Findings::new());
    }
}
