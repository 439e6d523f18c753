//! The page that lists the injected bugs.
//!
//! Its sources are the patches, which begin with a description, and the file with the first seeds.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, bail};

use super::FOLDER;
use crate::repository::SourceFile;

/// Path of the page.
pub const PAGE: &str = "docs/mutants.md";
/// The rules and the seed by which the simulation detects each mutant: `name | rules | seed 7`.
pub const FIRST_SEEDS: &str = "hack/mutants/first_seeds.txt";

/// Line of a patch for the tests that the simulation must detect, too.
const SIMULATED: &str = "Simulated: yes";
/// Marker of the packages whose tests must catch a mutant.
const TESTS: &str = "Tests: ";

const HEAD: &str = "\
# Mutants

Use this page to look up the bugs that `make mutants` injects, one at a time, and their detection.
`make fmt` writes the page from the patches in [hack/mutants](../hack/mutants) and from [first_seeds.txt](../hack/mutants/first_seeds.txt); [Testing](testing.md#mutants) describes the commands.
";

const CAUGHT_BY_TESTS: &str = "
## Caught by tests

The tests of the named packages must catch each of these bugs.

| mutant | bug | packages |
|---|---|---|
";

const CAUGHT_BY_THE_SIMULATION: &str = "
## Caught by the simulation

`hack/mutants.sh simulate` simulates the seeds 1 to 300 with each of these bugs, until one breaks a [rule](reliability.md#rules), and then the plans of known bugs.
The table names the rules broken up to then, and the first seed or plan that broke one.
A run that hangs counts only if another seed breaks a rule.

| mutant | bug | broken rules | first seed or plan |
|---|---|---|---|
";

/// A patch of the repository.
struct Mutant<'a> {
    name: &'a str,
    bug: String,
    /// Packages whose tests must catch it, separated by spaces.
    packages: Option<&'a str>,
    is_simulated: bool,
}

/// Returns the page.
///
/// # Errors
///
/// A line of `seeds` is malformed or names no simulated mutant, or a simulated mutant has no line.
pub fn page(patches: &[SourceFile], seeds: &str) -> anyhow::Result<String> {
    let mutants: Vec<Mutant<'_>> = patches.iter().filter_map(mutant).collect();
    let mut seeds = first_seeds(seeds)?;
    let mut page = format!("{HEAD}{CAUGHT_BY_TESTS}");
    for Mutant {
        name,
        bug,
        packages,
        ..
    } in &mutants
    {
        if let Some(packages) = packages {
            let _ = writeln!(page, "| `{name}` | {bug} | {packages} |");
        }
    }
    page.push_str(CAUGHT_BY_THE_SIMULATION);
    let mut simulated: Vec<&Mutant<'_>> = mutants.iter().filter(|it| it.is_simulated).collect();
    simulated.sort_by_key(|it| it.name);
    for Mutant { name, bug, .. } in simulated {
        let (rules, seed) = seeds
            .remove(name)
            .with_context(|| format!("{FIRST_SEEDS}: {name} has no line"))?;
        let _ = writeln!(page, "| `{name}` | {bug} | {rules} | {seed} |");
    }
    if let Some(name) = seeds.keys().next() {
        bail!("{FIRST_SEEDS}: {name} is not a simulated mutant");
    }
    Ok(page)
}

/// Reads the header of a patch in the folder.
fn mutant(patch: &SourceFile) -> Option<Mutant<'_>> {
    let path = patch.path.strip_prefix(FOLDER)?.strip_suffix(".patch")?;
    let (header, _) = patch.text.split_once("\n--- a/")?;
    let description = header.split("\n\n").next().unwrap_or(header);
    let packages = header.lines().find_map(|line| line.strip_prefix(TESTS));
    Some(Mutant {
        name: path.rsplit('/').next().unwrap_or(path),
        bug: description.trim().replace('\n', " ").replace('|', "\\|"),
        packages,
        is_simulated: path.contains('/') || header.lines().any(|line| line == SIMULATED),
    })
}

/// The rules and the seed of each mutant.
fn first_seeds(text: &str) -> anyhow::Result<BTreeMap<&str, (&str, &str)>> {
    let lines = text.lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let mut cells = line.split(" | ");
            let row = (cells.next(), cells.next(), cells.next(), cells.next());
            match row {
                (Some(name), Some(rules), Some(seed), None) => Ok((name, (rules, seed))),
                _ => bail!("{FIRST_SEEDS}: {line}: write `name | rules | seed`"),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "\n--- a/x.rs\n+++ b/x.rs\n";

    fn patches() -> Vec<SourceFile> {
        let both = format!("Pods are\nlost.\n\nTests: a b\nSimulated: yes\n{DIFF}");
        vec![
            SourceFile::new("hack/mutants/b.patch", &both),
            SourceFile::new("hack/mutants/c.patch", &format!("C.\n\nTests: c\n{DIFF}")),
            SourceFile::new("hack/mutants/simulated/a.patch", &format!("A.\n{DIFF}")),
        ]
    }

    #[test]
    fn page_lists_mutants_by_detection() {
        let seeds = "# A comment.\na | L-1, T-2 | seed 3\nb | P-2 | a-plan.json\n";
        let page = page(&patches(), seeds).expect("each simulated mutant has a line");
        let rows: Vec<&str> = page.lines().filter(|row| row.starts_with("| `")).collect();
        assert_eq!(
            rows,
            [
                "| `b` | Pods are lost. | a b |",
                "| `c` | C. | c |",
                "| `a` | A. | L-1, T-2 | seed 3 |",
                "| `b` | Pods are lost. | P-2 | a-plan.json |",
            ]
        );
    }

    #[test]
    fn missing_foreign_and_malformed_lines_are_errors() {
        for (seeds, error) in [
            ("a | L-1 | seed 3\n", "b has no line"),
            (
                "a | L-1 | seed 3\nb | P-2 | seed 1\nc | P-2 | seed 1\n",
                "c is not a simulated mutant",
            ),
            ("a | L-1\n", "a | L-1: write `name | rules | seed`"),
        ] {
            let found = page(&patches(), seeds).expect_err("a line is wrong");
            assert_eq!(found.to_string(), format!("{FIRST_SEEDS}: {error}"));
        }
    }
}
