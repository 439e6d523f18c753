//! Paths of a developer's machine, which no file may contain.

use std::path::Path;

use crate::{Findings, repository::SourceFile};

/// Prefixes of a machine's private paths, each in two parts so that this file passes the check.
const HOMES: [(&str, &str); 4] = [
    ("/ho", "me/"),
    ("/ro", "ot/"),
    ("/Us", "ers/"),
    ("/wo", "rk/"),
];

/// The private folders of this machine: the repository itself and the user's home.
pub fn private_folders(root: &Path, home: Option<&Path>) -> Vec<String> {
    [Some(root), home]
        .into_iter()
        .flatten()
        .map(|folder| folder.to_string_lossy().into_owned())
        .filter(|folder| folder.matches('/').count() > 1)
        .collect()
}

/// Checks every text file. Manifests may name homes of containers, and recorded reference data is
/// exempt.
pub fn check(files: &[SourceFile], private: &[String]) -> Findings {
    let mut findings = Findings::new();
    for file in files
        .iter()
        .filter(|file| !file.path.starts_with("test/vectors/"))
    {
        let manifest = file.has_extension("yaml") || file.has_extension("json");
        for (index, line) in file.text.lines().enumerate() {
            let own = private.iter().any(|folder| line.contains(folder.as_str()));
            let foreign = HOMES
                .iter()
                .any(|(head, tail)| holds(line, &format!("{head}{tail}")));
            if own || (foreign && !manifest) {
                findings.push(format!(
                    "{}:{}: contains a machine-specific path",
                    file.path,
                    index + 1
                ));
            }
        }
    }
    findings
}

/// Returns true if a path in `line` begins with `prefix`.
fn holds(line: &str, prefix: &str) -> bool {
    line.match_indices(prefix).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/}$*".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_and_the_checkout_are_found() {
        let private = private_folders(Path::new("/srv/checkout"), Some(Path::new("/r")));
        assert_eq!(private, ["/srv/checkout"]);
        for (head, tail) in HOMES {
            let text = format!("fine\nsee `{head}{tail}somebody/x`\n");
            assert_eq!(
                check(&[SourceFile::new("README.md", &text)], &private),
                ["README.md:2: contains a machine-specific path"]
            );
        }
        let log = SourceFile::new("docs/log.txt", "in /srv/checkout/crates\n");
        assert_eq!(check(&[log], &private).len(), 1);
    }

    #[test]
    fn container_paths_and_slashed_words_pass() {
        let (head, tail) = HOMES[0];
        let manifest = SourceFile::new("docs/a.yaml", &format!("path: {head}{tail}postgres\n"));
        assert_eq!(check(&[manifest], &[]), Findings::new());
        let text = SourceFile::new("a.rs", &format!("//! host{head}{tail} and /tmp/home\n"));
        assert_eq!(check(&[text], &[]), Findings::new());
    }
}
