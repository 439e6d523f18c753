//! Commands of Markdown pages that the repository provides: targets and variables of the Makefile,
//! scripts, packages.

use std::collections::BTreeSet;

use crate::{Findings, repository::SourceFile};

/// Words that end a command.
const ENDS: [&str; 5] = ["&&", "||", "|", ";", "\\"];

/// What the repository provides.
pub struct Provided<'a> {
    /// The text of the Makefile.
    pub makefile: &'a str,
    /// Paths of all files.
    pub paths: &'a [String],
    /// Names of the workspace's packages.
    pub packages: &'a BTreeSet<String>,
}

/// Checks the commands in code spans and in code of every page.
pub fn check(pages: &[SourceFile], provided: &Provided<'_>) -> Findings {
    let mut findings = Findings::new();
    for page in pages {
        let mut fenced = false;
        for (index, line) in page.text.lines().enumerate() {
            let fence = line.trim_start().starts_with("```");
            fenced ^= fence;
            let spans: Vec<&str> = if fenced {
                vec![line]
            } else {
                line.split('`').skip(1).step_by(2).collect()
            };
            for missing in spans.into_iter().flat_map(|text| missing(text, provided)) {
                findings.push(format!("{}:{}: {missing}", page.path, index + 1));
            }
        }
    }
    findings
}

/// Returns what the commands in a text name and the repository lacks.
fn missing(text: &str, provided: &Provided<'_>) -> Findings {
    let words = text.split_whitespace();
    let words: Vec<&str> = words.take_while(|word| *word != "#").collect();
    let mut findings = Findings::new();
    for (at, word) in words.iter().enumerate() {
        let rest = words.iter().skip(at + 1).copied();
        let arguments: Vec<&str> = rest.take_while(|word| !ENDS.contains(word)).collect();
        match *word {
            // In prose that is quoted as code, the word is a verb.
            "make" if is_command(&words, at) => {
                findings.extend(missing_targets(&arguments, provided.makefile));
            }
            "cargo" if is_command(&words, at) => {
                findings.extend(missing_packages(&arguments, provided));
            }
            word if is_script(word) && !provided.paths.iter().any(|path| path == word) => {
                findings.push(format!("{word} is missing"));
            }
            _ => {}
        }
    }
    findings
}

/// Returns true for the first word of a command, after variables of its environment.
fn is_command(words: &[&str], at: usize) -> bool {
    words
        .iter()
        .take(at)
        .rev()
        .take_while(|word| !ENDS.contains(word))
        .all(|word| word.contains('=') || *word == "$")
}

fn is_script(word: &str) -> bool {
    word.starts_with("hack/") && [".sh", ".py"].iter().any(|end| word.ends_with(end))
}

fn missing_targets(arguments: &[&str], makefile: &str) -> Findings {
    let mut findings = Findings::new();
    let mut is_quoted = false;
    for argument in arguments {
        let quotes = argument.matches(['\'', '"']).count();
        let begins_quoted = is_quoted;
        is_quoted ^= quotes % 2 == 1;
        if begins_quoted || argument.starts_with('-') {
            continue;
        }
        let found = match argument.split_once('=') {
            // A comment may name a variable that only a script reads.
            Some((variable, _)) => makefile
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(|word| word == variable),
            None => makefile.contains(&format!("\n{argument}:")),
        };
        if !found {
            findings.push(format!("the Makefile has no {argument}"));
        }
    }
    findings
}

/// The packages after `-p`, in commands for this workspace.
fn missing_packages(arguments: &[&str], provided: &Provided<'_>) -> Findings {
    let named = arguments.windows(2).filter(|pair| pair[0] == "-p");
    let missing = named.filter(|pair| !provided.packages.contains(pair[1]));
    let folders = arguments.windows(2).filter(|pair| pair[0] == "--path");
    let absent = folders.filter(|pair| {
        let manifest = format!("{}/Cargo.toml", pair[1]);
        !provided.paths.contains(&manifest)
    });
    missing
        .map(|pair| format!("the workspace has no package {}", pair[1]))
        .chain(absent.map(|pair| format!("{} is no package", pair[1])))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAKEFILE: &str = "SEEDS ?= 1\n\nrun: build\n\tcargo run $(FLAGS)\n\ntest-e2e:\n";

    fn found(page: &str) -> Findings {
        let paths = ["hack/dist.sh", "crates/a/Cargo.toml"].map(str::to_owned);
        let provided = Provided {
            makefile: MAKEFILE,
            paths: &paths,
            packages: &BTreeSet::from(["a".to_owned()]),
        };
        check(&[SourceFile::new("README.md", page)], &provided)
    }

    #[test]
    fn provided_commands_pass() {
        let page = "# A\n\n`make run SEEDS=2`, `X=1 make run FLAGS='-a b'`, `hack/dist.sh --plain`.\n\
                    ```sh\nmake test-e2e  # make it so\n$ cargo test -p a && make run\n```\n\
                    `cargo install --path crates/a`; rules that make a difference, `types make x`.\n";
        assert_eq!(found(page), Findings::new());
    }

    #[test]
    fn missing_targets_variables_scripts_and_packages_are_found() {
        let page = "`make runs`\n`make run SEED=1`\n```sh\ncd x && make tests\n```\n\
                    `hack/gone.py`\n`cargo run -p b`\n`cargo install --path crates/b`\n";
        assert_eq!(
            found(page),
            [
                "README.md:1: the Makefile has no runs",
                "README.md:2: the Makefile has no SEED=1",
                "README.md:4: the Makefile has no tests",
                "README.md:6: hack/gone.py is missing",
                "README.md:7: the workspace has no package b",
                "README.md:8: crates/b is no package",
            ]
        );
    }
}
