//! Tests of the wording rules.

use super::*;

fn found(path: &str, text: &str) -> Vec<String> {
    let findings = Rules::new().check(&SourceFile::new(path, text));
    let quoted = findings
        .iter()
        .filter_map(|finding| finding.split('"').nth(1));
    quoted.map(str::to_owned).collect()
}

#[test]
fn headers_and_headings_reject_clauses() {
    for first in CLAUSE_STARTS {
        let header = format!("//! {first} it does.\n");
        assert_eq!(found("x.rs", &header), [*first], "{header}");
        let heading = format!("# A\n\n## {first} it does\n");
        assert_eq!(found("x.md", &heading), [*first], "{heading}");
    }
    assert_eq!(found("x.rs", "//! Repairs a pod needs.\n"), [""; 0]);
}

#[test]
fn sentences_reject_clauses_as_subjects() {
    let text = "A pod.\nWhat fails is retried.\nWho asks? What now?\n";
    assert_eq!(found("x.md", text), ["what"]);
}

#[test]
fn every_phrase_is_rejected() {
    for (phrase, _) in PHRASES {
        let words = phrase.split_whitespace().map(|part| match part {
            "*" => "ready",
            part => part.split('|').next().unwrap_or_default(),
        });
        let words: Vec<&str> = words.collect();
        let text = format!("The pod {}", words.join(" "));
        assert!(!found("x.md", &text).is_empty(), "{phrase}: {text}");
    }
}

#[test]
fn examples_of_the_fault_are_rejected() {
    for (text, expected) in [
        ("Fails, for what is\nwrong.", "for what"),
        ("It lists anew.", "anew"),
        ("A client of its own: its budget.", "of its own :"),
        ("The names that are there.", "that are there"),
        ("As many pods as wanted.", "as many pods as"),
        ("The reference goes by its condition.", "goes by"),
        ("The row stands in the table.", "stands in the"),
        ("Logged for whoever asks.", "whoever"),
        (
            "Copies it, so that the text may go.",
            "so that the text may go",
        ),
        ("Waits for a finalizer, or not any more.", "any more"),
        ("A pod gets ready in time.", "gets ready"),
        ("Sent after a live look at the set.", "live look"),
        ("A pod that stays is waited for.", "is waited for"),
        ("The claim goes with the pod.", "goes with the"),
        ("Pods that don't go.", "don't go ."),
        ("A cause, and a way out.", "way out"),
        ("One line says why it fails.", "says why"),
        ("A sync looks at them.", "looks at"),
        ("Hears of a smaller plan.", "hears of"),
        (
            "Members of which the comment says that\nthey are old.",
            "of which the comment says that",
        ),
        ("A test beside the others.", "beside"),
        ("As upstream, it waits.", "as upstream ,"),
        ("It waits, as upstream.", ", as upstream ."),
        ("Runs with the stock role.", "stock role"),
        ("Equal to the byte.", "to the byte"),
        ("It reaches the wanted state.", "wanted state"),
        ("Reads the present pods.", "present pods"),
        ("A client with all rights.", "all rights"),
        ("It lacks the right to list pods.", "the right to"),
        ("The write dooms a claim.", "dooms a"),
        ("The response gets lost.", "gets lost"),
    ] {
        assert_eq!(found("x.md", text), [expected], "{text}");
        let comment = text.replace('\n', "\n# ");
        assert_eq!(found("x.sh", &format!("# {comment}\nrun\n")), [expected]);
    }
}

#[test]
fn plain_sentences_and_quotes_pass() {
    for text in [
        "Uses its own namespace. There is no leader. It stands in for the server.",
        "The log says `API server told anew`, and \"whoever asks\".",
        "Is there a leader? See [the list](whatever/anew.md).",
        "It goes to the queue, takes more than one, and says so: look at the log.",
        "As upstream does, it waits. The lanes go from left to right. The right list wins.",
    ] {
        assert_eq!(found("x.md", text), [""; 0], "{text}");
    }
}

#[test]
fn rust_comments_and_messages_are_read() {
    let text = "//! A file.\n\n/// Some item, of\n/// its own.\nfn f<'a>() -> char {\n    \
                let x = \"anew\"; // told\n    bail!(\"no {x} for ever\", '\"', r#\"so many\"#);\n    \
                call(\"whoever\").context(format!(\"nobody\"))\n}\n";
    let expected = ["of its own .", "told", "for ever", "so many", "nobody"];
    assert_eq!(found("x.rs", text), expected);
    let finding = &Rules::new().check(&SourceFile::new("x.rs", text))[0];
    assert!(finding.starts_with("x.rs:3: "), "{finding}");
}

#[test]
fn code_blocks_and_strings_of_code_pass() {
    let text = "//! A file.\n\n/// Text.\n///\n/// ```\n/// let anew = told;\n/// ```\nconst A: &str = \
                \"whoever\";\n";
    assert_eq!(found("x.rs", text), [""; 0]);
    assert_eq!(found("x.md", "```text\nanew\n```\n"), [""; 0]);
}

#[test]
fn test_names_are_read_unless_ported() {
    let text = "//! Tests.\n\n#[test]\nfn what_is_no_set_is_refused() {}\n\n#[test]\nfn \
                test_what() {}\n";
    assert_eq!(found("x/src/x.rs", text), ["what"]);
    assert_eq!(found("x/src/tests/upstream/x.rs", text), [""; 0]);
}

#[test]
fn headers_of_patches_and_comments_of_manifests_are_read() {
    let patch = "It is told.\n\nTests: a\n\n--- a/x.rs\n+++ b/x.rs\n+// anew\n";
    assert_eq!(found("a.patch", patch), ["told"]);
    let yaml = "#!/bin/sh\nkey: \"a # anew\" # told\nsummary: For ever.\n";
    assert_eq!(found("a.yaml", yaml), ["told", "for ever"]);
}

#[test]
fn long_test_names_are_rejected() {
    for (length, count) in [(59, 0), (60, 1)] {
        let name = "a".repeat(length);
        let text = format!("//! Tests.\n\n#[tokio::test]\nasync fn {name}() {{}}\n");
        let findings = Rules::new().check(&SourceFile::new("x/src/x.rs", &text));
        assert_eq!(findings.len(), count, "{findings:?}");
        let ported = SourceFile::new("x/src/tests/upstream/x.rs", &text);
        assert!(Rules::new().check(&ported).is_empty());
    }
}
