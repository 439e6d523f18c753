//! Import cycles between modules, and the number of modules per level.

mod graph;

use std::collections::{BTreeMap, BTreeSet};

use crate::{Findings, repository::SourceFile};
use graph::{Crate, Graph};

/// The most modules side by side on one level of a crate, test modules aside.
const MODULES_MAX: usize = 25;

/// Checks every library and binary of the workspace; the sources of test targets don't count.
pub fn check(files: &[SourceFile], roots: &BTreeSet<String>) -> Findings {
    let by_path: BTreeMap<&str, &SourceFile> = files
        .iter()
        .map(|file| (file.path.as_str(), file))
        .collect();
    let mut findings = Findings::new();
    for root in roots {
        let read = |path: &str| by_path.get(path).map(|file| file.text.as_str());
        findings.extend(check_crate(root, &Crate::read(root, &read)));
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

    fn findings(modules: &[(&str, &str)]) -> Findings {
        let declared = modules.iter().flat_map(|(name, _)| ["mod ", name, ";\n"]);
        let root: String = declared.collect();
        let mut files = vec![SourceFile::new(ROOT, &root)];
        for (name, text) in modules {
            files.push(SourceFile::new(&format!("a/src/{name}.rs"), text));
        }
        check(&files, &BTreeSet::from([ROOT.to_owned()]))
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
            findings(&LOOP),
            [
                "a/src/lib.rs: 3 modules import each other: a, b, c; break a → b in a/src/a.rs, \
                 b → c in a/src/b.rs, c → a in a/src/c.rs"
            ]
        );
    }

    #[test]
    fn imports_that_point_one_way_pass() {
        assert_eq!(findings(&LOOP[1..]), Findings::new());
    }

    #[test]
    fn a_loop_in_test_code_passes() {
        let tests = "#[cfg(test)]\nmod tests { use crate::a::A; }\n";
        let modules = [("a", "use crate::b::B;\n"), ("b", tests)];
        assert_eq!(findings(&modules), Findings::new());
    }

    #[test]
    fn a_crowded_level_is_found() {
        let names: Vec<String> = (0..=MODULES_MAX).map(|index| format!("m{index}")).collect();
        let modules: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        assert_eq!(findings(&modules[1..]), Findings::new());
        assert_eq!(
            findings(&modules),
            ["a/src/lib.rs: 26 modules on one level, in crate::; group them, 25 is the most"]
        );
    }
}
