//! Module loops on every level of a crate, impl blocks outside of their type's file, two methods of
//! one name, and the number of modules per level.

mod graph;
mod scan;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};

use crate::{Findings, repository::SourceFile};
use graph::{Double, Edges, Graph, Stray, doubles, strays};
use scan::Crate;

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
        let found = Crate::read(root, &read);
        let unreadable = found.unreadable.iter();
        findings.extend(unreadable.map(|error| format!("{root}: cannot read {error}")));
        findings.extend(check_crowds(root, &found));
        findings.extend(check_loops(root, &found));
        findings.extend(check_impls(&found));
        findings.extend(check_doubles(&found));
    }
    findings
}

fn check_crowds(root: &str, found: &Crate) -> Findings {
    let crowds = levels(found)
        .into_iter()
        .filter(|(_, modules)| modules.len() > MODULES_MAX);
    let findings = crowds.map(|(level, modules)| {
        format!(
            "{root}: {} modules on one level, in {}; group them, {MODULES_MAX} is the most",
            modules.len(),
            place(level)
        )
    });
    findings.collect()
}

fn check_loops(root: &str, found: &Crate) -> Findings {
    let edges = Edges::of(found);
    let mut findings = Findings::new();
    for level in levels(found).into_keys() {
        let graph = edges.level(level);
        for modules in components(&graph) {
            let cycle: Vec<String> = shortest_cycle(&graph, &modules)
                .windows(2)
                .map(|step| format!("{} → {} in {}", step[0], step[1], graph[step[0]][step[1]]))
                .collect();
            let names: Vec<&str> = modules.into_iter().collect();
            findings.push(format!(
                "{root}: loop in {}: {}; break {}",
                place(level),
                names.join(", "),
                cycle.join(", ")
            ));
        }
    }
    findings
}

fn check_impls(found: &Crate) -> Findings {
    let strays = strays(found).into_iter().map(|Stray { file, of, home }| {
        format!("{file}: impl of {of}; move it to {home}, or make it functions")
    });
    // One finding for all blocks of a type in a file.
    let findings: BTreeSet<String> = strays.collect();
    findings.into_iter().collect()
}

fn check_doubles(found: &Crate) -> Findings {
    let doubles = doubles(found)
        .into_iter()
        .map(|Double { file, of, method }| {
            format!("{file}: {of} and a trait have a method {method} each; rename one")
        });
    doubles.collect()
}

/// The path of a module, `crate::cache::informer`.
fn place(module: &[String]) -> String {
    let path = std::iter::once("crate").chain(module.iter().map(String::as_str));
    path.collect::<Vec<_>>().join("::")
}

/// The names of the modules directly in each module that has any.
fn levels(found: &Crate) -> BTreeMap<&[String], BTreeSet<&str>> {
    let mut levels: BTreeMap<&[String], BTreeSet<&str>> = BTreeMap::new();
    for module in found.modules.keys() {
        if let Some((name, around)) = module.split_last() {
            levels.entry(around).or_default().insert(name);
        }
    }
    levels
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
mod tests;
