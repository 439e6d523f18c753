//! Agreement of the lists of published packages: manifests, Makefile, and the promises of CONTRIBUTING.

use std::collections::BTreeSet;
use std::path::Path;

use crate::Findings;
use crate::metadata::Metadata;

/// Page with one promise per package.
const PAGE: &str = "CONTRIBUTING.md";

/// Compares the packages of the workspace with the variable `PACKAGES` of the Makefile, which has
/// the published ones, and with the page's table, which also has the programs.
pub fn check(metadata: &Metadata, root: &Path, makefile: &str, page: &str) -> Findings {
    let members = metadata.members().into_values();
    let shipped: Vec<_> = members
        .filter(|package| package.folder(root).starts_with("crates/"))
        .collect();
    let names = |published_only: bool| -> BTreeSet<String> {
        let chosen = shipped.iter();
        let chosen = chosen.filter(|package| !published_only || package.is_publishable());
        chosen.map(|package| package.name.clone()).collect()
    };
    let mut findings = differences("Makefile: PACKAGES", &packages(makefile), &names(true));
    let table = format!("{PAGE}: the table of the public API");
    findings.extend(differences(&table, &promised(page), &names(false)));
    findings
}

fn differences(list: &str, listed: &BTreeSet<String>, wanted: &BTreeSet<String>) -> Findings {
    let missing = wanted.difference(listed);
    let missing = missing.map(|name| format!("{list} lacks {name}"));
    let other = listed.difference(wanted);
    missing
        .chain(other.map(|name| format!("{list} names {name}, which is no such package")))
        .collect()
}

/// Returns the words of the variable `PACKAGES`, with `$(addprefix a,b c)` expanded.
fn packages(makefile: &str) -> BTreeSet<String> {
    let joined = makefile.replace("\\\n", " ");
    let mut lines = joined.lines();
    let value = lines.find_map(|line| line.strip_prefix("PACKAGES := "));
    let mut prefix = "";
    let mut names = BTreeSet::new();
    let words = value.unwrap_or_default().split_whitespace();
    for word in words.filter(|word| *word != "$(addprefix") {
        let (before, word) = word.split_once(',').unwrap_or((prefix, word));
        let name = word.trim_end_matches(')');
        names.insert(format!("{before}{name}"));
        prefix = if name == word { before } else { "" };
    }
    names
}

/// Returns the names in the first column of the table below the heading `Public API`.
fn promised(page: &str) -> BTreeSet<String> {
    let section = page.split_once("\n## Public API\n");
    let rows = section.map_or("", |(_, section)| section).lines();
    let cells = rows.filter_map(|row| row.strip_prefix("| `")?.split(" | ").next());
    let names = cells.flat_map(|cell| cell.split(", "));
    names
        .map(|name| name.trim_matches('`').to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Package;

    const MAKEFILE: &str = "A := b\nPACKAGES := a $(addprefix b,-c -d) \\\n\t$(addprefix e-,f) g\n";
    const TABLE: &str = "# A\n\n| `z` | no |\n\n## Public API\n\n| package | promise |\n|---|---|\n\
        | `a`, `b-c` | all of `y` |\n| `b-d`, `e-f`, `g` | none |\n| `program` | flags |\n";

    fn package(name: &str, folder: &str, publish: Option<Vec<String>>) -> Package {
        Package {
            id: name.to_owned(),
            name: name.to_owned(),
            manifest_path: format!("/r/{folder}/{name}/Cargo.toml"),
            publish,
            ..Package::default()
        }
    }

    fn found(libraries: &[&str]) -> Findings {
        let libraries = libraries.iter();
        let mut packages: Vec<Package> = libraries
            .map(|name| package(name, "crates", None))
            .collect();
        packages.push(package("program", "crates", Some(Vec::new())));
        packages.push(package("checks", "hack", Some(Vec::new())));
        let metadata = Metadata {
            workspace_members: packages.iter().map(|it| it.id.clone()).collect(),
            packages,
            ..Metadata::default()
        };
        check(&metadata, Path::new("/r"), MAKEFILE, TABLE)
    }

    #[test]
    fn equal_lists_pass() {
        assert_eq!(found(&["a", "b-c", "b-d", "e-f", "g"]), Findings::new());
    }

    #[test]
    fn missing_and_other_packages_are_found() {
        assert_eq!(
            found(&["a", "b-c", "b-d", "e-f", "h"]),
            [
                "Makefile: PACKAGES lacks h",
                "Makefile: PACKAGES names g, which is no such package",
                "CONTRIBUTING.md: the table of the public API lacks h",
                "CONTRIBUTING.md: the table of the public API names g, which is no such package",
            ]
        );
    }
}
