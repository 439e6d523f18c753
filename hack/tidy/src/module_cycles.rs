//! Modules of a crate depend on each other one way, and stay few on each level.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Findings,
    module_graph::{Crate, Graph},
    repository::SourceFile,
};

/// The most modules side by side on one level of a crate, test modules aside.
const MODULES_MAX: usize = 25;

/// Crates that don't pass yet, by their root file. The list only shrinks.
const UNSPLIT: [&str; 0] = [];

/// Checks every library and binary of the workspace; the sources of test targets don't count.
pub fn check(files: &[SourceFile], roots: &BTreeSet<String>) -> Findings {
    check_all(files, roots, &UNSPLIT)
}

fn check_all(files: &[SourceFile], roots: &BTreeSet<String>, unsplit: &[&str]) -> Findings {
    let by_path: BTreeMap<&str, &SourceFile> = files
        .iter()
        .map(|file| (file.path.as_str(), file))
        .collect();
    let mut findings = Findings::new();
    for root in roots {
        let read = |path: &str| by_path.get(path).map(|file| file.text.as_str());
        let found = check_crate(root, &Crate::read(root, &read));
        if !unsplit.contains(&root.as_str()) {
            findings.extend(found);
        } else if found.is_empty() {
            findings.push(format!("{root}: passes; take it off the list UNSPLIT"));
        }
    }
    for root in unsplit.iter().filter(|root| !roots.contains(**root)) {
        findings.push(format!("{root}: is no crate; take it off the list UNSPLIT"));
    }
    findings
}

fn check_crate(root: &str, found: &Crate) -> Findings {
    let mut findings = Findings::new();
    for error in &found.unreadable {
        findings.push(format!("{root}: cannot read {error}"));
    }
    for (level, modules) in &found.levels {
        if modules.len() > MODULES_MAX {
            findings.push(format!(
                "{root}: {} modules on one level, in crate::{level}; group them, {MODULES_MAX} is the most",
                modules.len()
            ));
        }
    }
    let graph = found.graph();
    for modules in components(&graph) {
        let cycle: Vec<String> = shortest_cycle(&graph, &modules)
            .windows(2)
            .map(|step| format!("{} → {} in {}", step[0], step[1], graph[step[0]][step[1]]))
            .collect();
        findings.push(format!(
            "{root}: {} modules import each other: {}; break {}",
            modules.len(),
            modules.iter().copied().collect::<Vec<_>>().join(", "),
            cycle.join(", ")
        ));
    }
    findings
}

/// The groups of modules each of which reaches all others of its group.
fn components(graph: &Graph) -> Vec<BTreeSet<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = graph
        .keys()
        .map(|module| (module.as_str(), reached_from(graph, module)))
        .collect();
    let mut found: Vec<BTreeSet<&str>> = Vec::new();
    for (module, others) in &reached {
        if !others.contains(module) || found.iter().any(|group| group.contains(module)) {
            continue;
        }
        let back = |other: &&&str| {
            reached
                .get(**other)
                .is_some_and(|from| from.contains(module))
        };
        found.push(others.iter().filter(back).copied().collect());
    }
    found
}

fn reached_from<'a>(graph: &'a Graph, module: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![module];
    while let Some(next) = open.pop() {
        for target in graph.get(next).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(target.as_str()) {
                open.push(target);
            }
        }
    }
    reached
}

/// A shortest way from a module of the group back to itself; it begins and ends with the same.
fn shortest_cycle<'a>(graph: &'a Graph, group: &BTreeSet<&'a str>) -> Vec<&'a str> {
    let mut ways: Vec<Vec<&str>> = group.iter().map(|module| vec![*module]).collect();
    for _ in group {
        let mut longer = Vec::new();
        for way in &ways {
            let last = way.last().and_then(|last| graph.get(*last));
            for next in last.into_iter().flat_map(BTreeMap::keys) {
                let mut way = way.clone();
                way.push(next);
                if way[0] == next {
                    return way;
                }
                if group.contains(next.as_str()) && !way[..way.len() - 1].contains(&next.as_str()) {
                    longer.push(way);
                }
            }
        }
        ways = longer;
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "a/src/lib.rs";

    fn check_with(modules: &[(&str, &str)], unsplit: &[&str]) -> Findings {
        let declared = modules.iter().flat_map(|(name, _)| ["mod ", name, ";\n"]);
        let root: String = declared.collect();
        let mut files = vec![SourceFile::new(ROOT, &root)];
        for (name, text) in modules {
            files.push(SourceFile::new(&format!("a/src/{name}.rs"), text));
        }
        check_all(&files, &BTreeSet::from([ROOT.to_owned()]), unsplit)
    }

    const LOOP: [(&str, &str); 4] = [
        ("a", "use crate::b::B;\n"),
        ("b", "fn f() { crate::c::g(); }\n"),
        ("c", "use super::{a::{A, C}, d};\n"),
        ("d", "use std::fmt;\n"),
    ];

    #[test]
    fn a_loop_is_found_with_its_files() {
        assert_eq!(
            check_with(&LOOP, &[]),
            [
                "a/src/lib.rs: 3 modules import each other: a, b, c; break a → b in a/src/a.rs, \
                 b → c in a/src/b.rs, c → a in a/src/c.rs"
            ]
        );
    }

    #[test]
    fn imports_that_point_one_way_pass() {
        assert_eq!(check_with(&LOOP[1..], &[]), Findings::new());
    }

    #[test]
    fn a_loop_in_test_code_passes() {
        let tests = "#[cfg(test)]\nmod tests { use crate::a::A; }\n";
        let modules = [("a", "use crate::b::B;\n"), ("b", tests)];
        assert_eq!(check_with(&modules, &[]), Findings::new());
    }

    #[test]
    fn a_crowded_level_is_found() {
        let names: Vec<String> = (0..=MODULES_MAX).map(|index| format!("m{index}")).collect();
        let modules: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        assert_eq!(check_with(&modules[1..], &[]), Findings::new());
        assert_eq!(
            check_with(&modules, &[]),
            ["a/src/lib.rs: 26 modules on one level, in crate::; group them, 25 is the most"]
        );
    }

    #[test]
    fn the_list_excuses_only_what_needs_it() {
        assert_eq!(check_with(&LOOP, &[ROOT]), Findings::new());
        assert_eq!(
            check_with(&LOOP[1..], &[ROOT]),
            ["a/src/lib.rs: passes; take it off the list UNSPLIT"]
        );
        assert_eq!(
            check_with(&LOOP[1..], &["b/src/lib.rs"]),
            ["b/src/lib.rs: is no crate; take it off the list UNSPLIT"]
        );
    }
}
