//! Lints against panics in every crate that reads server data.

use crate::{Findings, layout::CRATES, repository::SourceFile};

/// Required lints of a crate's root; clippy denies warnings.
const LINTS: &str = "#![cfg_attr(
    not(test),
    warn(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable
    )
)]";

/// Exempt crate: a panic there stops a test, not a cluster.
const EXCEPTION: &str = "test-control-plane";

/// Finds crates without the lints in their root.
pub fn check(files: &[SourceFile]) -> Findings {
    let mut findings = Findings::new();
    for (folder, _) in CRATES
        .iter()
        .filter(|(folder, _)| !folder.starts_with(EXCEPTION))
    {
        let roots = ["lib", "main"].map(|root| format!("crates/{folder}/src/{root}.rs"));
        let has_lints =
            |file: &&SourceFile| roots.contains(&file.path) && file.text.contains(LINTS);
        if !files.iter().any(|file| has_lints(&file)) {
            findings.push(format!(
                "crates/{folder}: its root lacks the lints against panics; copy them from another crate"
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_without_the_lints_are_found() {
        let mut files: Vec<SourceFile> = CRATES
            .iter()
            .filter(|(folder, _)| !folder.starts_with(EXCEPTION))
            .map(|(folder, _)| SourceFile::new(&format!("crates/{folder}/src/lib.rs"), LINTS))
            .collect();
        assert_eq!(check(&files), Findings::new());
        files[0].text = LINTS.replace("clippy::panic,", "");
        assert_eq!(check(&files).len(), 1);
        files.remove(0);
        assert_eq!(check(&files).len(), 1);
    }
}
