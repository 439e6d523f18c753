//! Feature gates of test doubles.

use crate::{
    Findings,
    repository::{SourceFile, folder},
};

/// The required gate of a fake.
const GATE: &str = "#[cfg(any(test, feature = \"testing\"))]";

/// Checks that the `mod` line of every `fake.rs` (or `fake_….rs`, `fakes.rs`) carries the gate.
pub fn check(files: &[SourceFile]) -> Findings {
    let mut findings = Findings::new();
    for file in files.iter().filter(|file| file.path.contains("/src/")) {
        let module = file.name().trim_end_matches(".rs");
        if module != "fake" && module != "fakes" && !module.starts_with("fake_") {
            continue;
        }
        let parents = parents(&file.path);
        let declarations = files
            .iter()
            .filter(|other| parents.contains(&other.path))
            .map(|parent| gated(&parent.text, module));
        if !declarations.into_iter().all(|gated| gated) {
            findings.push(format!("{}: put {GATE} above its mod line", file.path));
        }
    }
    findings
}

/// Files that may declare the module at `path`.
fn parents(path: &str) -> Vec<String> {
    let folder = folder(path);
    vec![
        format!("{folder}/lib.rs"),
        format!("{folder}/main.rs"),
        format!("{folder}.rs"),
    ]
}

/// Returns false if `text` declares `module` without the gate.
fn gated(text: &str, module: &str) -> bool {
    let inner = GATE.replacen('#', "#!", 1);
    if text.contains(&inner) {
        return true;
    }
    let mut attributes: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[") || line.starts_with("//") {
            attributes.push(line);
            continue;
        }
        let declared = line
            .strip_suffix(';')
            .and_then(|line| line.rsplit_once("mod "));
        if declared.is_some_and(|(_, name)| name == module) {
            return attributes
                .iter()
                .any(|line| *line == GATE || *line == "#[cfg(test)]");
        }
        attributes.clear();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crate_with(lib: &str) -> Vec<SourceFile> {
        vec![
            SourceFile::new("crates/a/src/lib.rs", lib),
            SourceFile::new("crates/a/src/fake.rs", "//! Fakes.\n"),
        ]
    }

    #[test]
    fn gated_fakes_pass() {
        let lib = format!("//! A.\n\n/// Doubles.\n{GATE}\npub mod fake;\nmod real;\n");
        assert_eq!(check(&crate_with(&lib)), Findings::new());
    }

    #[test]
    fn shipped_fakes_are_found() {
        let lib = format!("//! A.\n{GATE}\nmod other;\npub mod fake;\n");
        assert_eq!(
            check(&crate_with(&lib)),
            [format!(
                "crates/a/src/fake.rs: put {GATE} above its mod line"
            )]
        );
    }
}
