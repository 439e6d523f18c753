//! Tests of generated texts: the flag list, shell completions, the man page.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::program::{Finished, run};

fn generated(text: &str) -> String {
    let Finished {
        code,
        stdout,
        stderr,
    } = run(&[&format!("--generate={text}")]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{text}");
    stdout
}

#[test]
fn flag_documentation_is_up_to_date() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/flags.md");
    let committed = std::fs::read_to_string(page).unwrap_or_default();
    assert!(
        generated("markdown") == committed,
        "docs/flags.md is out of date: run make fmt"
    );
}

#[test]
fn bash_loads_the_completions() {
    let mut bash = Command::new("bash")
        .arg("-n")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let script = generated("completion-bash");
    let mut stdin = bash.stdin.take().unwrap();
    stdin.write_all(script.as_bytes()).unwrap();
    drop(stdin);
    assert!(bash.wait().unwrap().success());
    assert!(
        script.contains("complete -F _statefulset__controller__manager"),
        "{script}"
    );
}

#[test]
fn man_page_has_the_usual_sections() {
    let page = generated("man");
    let expected = ".TH statefulset-controller-manager 8";
    assert!(
        page.lines().any(|line| line.starts_with(expected)),
        "{page}"
    );
    for section in ["NAME", "SYNOPSIS", "DESCRIPTION"] {
        let heading = format!(".SH {section}");
        assert!(
            page.lines().any(|line| line == heading),
            "{section}: {page}"
        );
    }
    assert!(page.contains("concurrent\\-statefulset\\-syncs"), "{page}");
}

#[test]
fn unknown_text_is_rejected_in_one_line() {
    let finished = run(&["--generate=pdf"]);
    let expected = "Error: invalid argument \"pdf\" for \"--generate\" flag: must be \
                    completion-bash, completion-elvish, completion-fish, completion-powershell, \
                    completion-zsh, man or markdown\n";
    assert_eq!(
        (finished.code, finished.stderr.as_str()),
        (Some(1), expected)
    );
}
