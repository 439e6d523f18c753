//! Rules for the text of each Rust file.

use crate::{Findings, repository::SourceFile};

/// Forbidden texts in Rust code, with the remedy. Each is in two parts so that this file passes the
/// check.
const FORBIDDEN: [(&str, &str, &str); 8] = [
    ("FIX", "ME", "finish or delete it"),
    ("todo", "!(", "finish or delete it"),
    ("unimplemented", "!(", "finish or delete it"),
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

/// Types that make a `static` process-wide mutable state.
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
            "{}: begin with a //! line that describes the file",
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
    fn files_without_headers_are_found() {
        assert_eq!(
            check(&[SourceFile::new("x.rs", "//! A file.\n")]),
            Findings::new()
        );
        assert_eq!(
            check(&[SourceFile::new("x.rs", "use a::b;\n")]),
            ["x.rs: begin with a //! line that describes the file"]
        );
    }

    #[test]
    fn forbidden_texts_are_found_with_their_line() {
        for (head, tail, _) in FORBIDDEN {
            let text = format!("//! A file.\n    {head}{tail}\n");
            let findings = check(&[SourceFile::new("x.rs", &text)]);
            assert_eq!(findings.len(), 1, "{head}{tail}");
            assert!(findings[0].starts_with("x.rs:2: "), "{findings:?}");
        }
    }

    #[test]
    fn global_counters_are_found_and_tables_pass() {
        let counter = "//! x\npub static COUNT: AtomicUsize = AtomicUsize::new(0);\n";
        assert_eq!(check(&[SourceFile::new("x.rs", counter)]).len(), 1);
        let table = "//! x\nstatic TABLE: LazyLock<BTreeMap<u8, u8>> = LazyLock::new(table);\n";
        assert_eq!(check(&[SourceFile::new("x.rs", table)]), Findings::new());
    }
}
