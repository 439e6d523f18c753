//! Licences of all packages, against the list in `.deny.toml`.

use std::collections::BTreeSet;

use crate::{Findings, metadata::Metadata};

/// Checks the licence of every package of the graph against the allow-list.
pub fn check(metadata: &Metadata, allowed: &BTreeSet<String>) -> Findings {
    let mut findings = Findings::new();
    if allowed.is_empty() {
        findings.push(".deny.toml: no allow-list of licences found".to_owned());
    }
    for package in &metadata.packages {
        match &package.license {
            None => findings.push(format!("{}: declares no licence", package.name)),
            Some(expression) if satisfied(expression, allowed) => {}
            Some(expression) => {
                findings.push(format!(
                    "{}: licence {expression} is not allowed",
                    package.name
                ));
            }
        }
    }
    findings
}

/// Reads the strings of `allow = [ … ]` in the `[licenses]` table of `.deny.toml`.
pub fn allow_list(deny_toml: &str) -> BTreeSet<String> {
    let strings = deny_toml
        .split_once("[licenses]")
        .and_then(|(_, table)| table.split_once("allow = ["))
        .and_then(|(_, list)| list.split_once(']'))
        .map_or("", |(list, _)| list);
    strings
        .split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Returns true if allowed licences satisfy an SPDX expression. `AND` binds tighter than `OR`, `/`
/// is an old spelling of `OR`, and `X WITH Y` is a separate licence.
fn satisfied(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = tokens.as_slice();
    any_of(&mut rest, allowed) && rest.is_empty()
}

fn any_of(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut met = all_of(rest, allowed);
    while take(rest, "OR") {
        met |= all_of(rest, allowed);
    }
    met
}

fn all_of(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut met = one(rest, allowed);
    while take(rest, "AND") {
        met &= one(rest, allowed);
    }
    met
}

fn one(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    if take(rest, "(") {
        return any_of(rest, allowed) & take(rest, ")");
    }
    let Some((name, tail)) = rest.split_first() else {
        return false;
    };
    *rest = tail;
    if take(rest, "WITH") {
        let Some((exception, tail)) = rest.split_first() else {
            return false;
        };
        *rest = tail;
        return allowed.contains(&format!("{name} WITH {exception}"));
    }
    allowed.contains(*name)
}

fn take(rest: &mut &[&str], word: &str) -> bool {
    match rest.split_first() {
        Some((first, tail)) if *first == word => {
            *rest = tail;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Package;

    fn allowed() -> BTreeSet<String> {
        allow_list(
            "[bans]\nallow = [\"no\"]\n[licenses]\nallow = [\n \"MIT\", \"ISC\",\n \
             \"Apache-2.0\", \"Apache-2.0 WITH LLVM-exception\",\n]\n",
        )
    }

    #[test]
    fn allow_list_comes_from_the_licenses_table() {
        assert_eq!(
            allowed().into_iter().collect::<Vec<_>>(),
            ["Apache-2.0", "Apache-2.0 WITH LLVM-exception", "ISC", "MIT"]
        );
    }

    #[test]
    fn expressions_have_spdx_precedence() {
        let cases = [
            ("MIT", true),
            ("GPL-3.0", false),
            ("MIT OR GPL-3.0", true),
            ("MIT/Apache-2.0", true),
            ("GPL-3.0 OR MIT AND ISC", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR GPL-3.0) AND ISC", true),
            ("(MIT OR ISC) AND GPL-3.0", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("MIT WITH LLVM-exception", false),
            ("", false),
            ("MIT )", false),
        ];
        for (expression, met) in cases {
            assert_eq!(satisfied(expression, &allowed()), met, "{expression}");
        }
    }

    #[test]
    fn missing_and_forbidden_licences_are_found() {
        let package = |name: &str, license: Option<&str>| Package {
            name: name.to_owned(),
            license: license.map(str::to_owned),
            ..Package::default()
        };
        let packages = vec![
            package("fine", Some("MIT")),
            package("silent", None),
            package("copyleft", Some("AGPL-3.0")),
        ];
        let metadata = Metadata {
            packages,
            ..Metadata::default()
        };
        assert_eq!(
            check(&metadata, &allowed()),
            [
                "silent: declares no licence",
                "copyleft: licence AGPL-3.0 is not allowed"
            ]
        );
    }
}
