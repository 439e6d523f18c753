//! Module loops on every level of a crate, impl blocks outside of their type's file, and the number
//! of modules per level.

mod graph;
mod scan;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};

use crate::{Findings, repository::SourceFile};
use graph::{Edges, Graph, Stray, strays};
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
mod tests {
    use super::*;

    const ROOT: &str = "a/src/lib.rs";

    /// The findings in a crate with these modules; `x/y` is a module in `x`, which declares it.
    fn findings(modules: &[(&str, &str)]) -> Findings {
        let top = modules.iter().filter(|(name, _)| !name.contains('/'));
        let root: String = top.flat_map(|(name, _)| ["mod ", name, ";\n"]).collect();
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
                "a/src/lib.rs: loop in crate: a, b, c; break a → b in a/src/a.rs, \
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
    fn a_loop_through_methods_of_one_type_is_found() {
        let modules = [
            (
                "create",
                "impl Server { fn create(&self) { self.decode() } }\n",
            ),
            (
                "decode",
                "impl Server { fn decode(&self) { Self::create(self) } }\n",
            ),
            ("server", "pub struct Server;\n"),
        ];
        let imported = modules.map(|(name, text)| match name {
            "server" => (name, text.to_owned()),
            _ => (name, format!("use crate::server::Server;\n{text}")),
        });
        let modules = imported
            .each_ref()
            .map(|(name, text)| (*name, text.as_str()));
        assert_eq!(
            findings(&modules),
            [
                "a/src/lib.rs: loop in crate: create, decode; break create → decode in \
                 a/src/create.rs, decode → create in a/src/decode.rs",
                "a/src/create.rs: impl of Server; move it to a/src/server.rs, or make it functions",
                "a/src/decode.rs: impl of Server; move it to a/src/server.rs, or make it functions",
            ]
        );
    }

    #[test]
    fn a_call_from_below_to_a_method_above_is_found() {
        let modules = [
            (
                "base",
                "pub struct Base;\nfn f(base: &Base) { base.rise() }\n",
            ),
            (
                "top",
                "use crate::base::Base;\nimpl Base { pub fn rise(&self) {} }\n",
            ),
        ];
        let found = findings(&modules);
        let is_loop = |line: &String| line.starts_with("a/src/lib.rs: loop in crate: base, top;");
        assert!(found.iter().any(is_loop), "{found:?}");
    }

    #[test]
    fn a_loop_between_modules_of_a_folder_is_found() {
        let modules = [
            ("pods", "mod slot;\nmod storage;\npub use slot::Slot;\n"),
            ("pods/slot", "use super::storage::f;\npub struct Slot;\n"),
            ("pods/storage", "pub fn f(slot: &super::Slot) {}\n"),
        ];
        assert_eq!(
            findings(&modules),
            [
                "a/src/lib.rs: loop in crate::pods: slot, storage; break slot → storage in \
                 a/src/pods/slot.rs, storage → slot in a/src/pods/storage.rs"
            ]
        );
    }

    #[test]
    fn a_helper_in_the_top_room_is_found() {
        let top = "mod cost;\npub fn eval() { cost::of() }\npub fn ask() {}\n";
        let modules = [("cel", top), ("cel/cost", "pub fn of() { super::ask() }\n")];
        assert_eq!(
            findings(&modules),
            [
                "a/src/lib.rs: loop in crate::cel: cost, self; break cost → self in \
                 a/src/cel/cost.rs, self → cost in a/src/cel.rs"
            ]
        );
    }

    #[test]
    fn an_impl_block_outside_of_its_types_file_is_found() {
        let outside =
            "use super::a::A;\nimpl<T> A<T>\nwhere\n    T: Fn() -> u8,\n{\n    fn f(&self) {}\n}\n";
        let modules = [("a", "pub struct A<T>(T);\n"), ("b", outside)];
        assert_eq!(
            findings(&modules),
            ["a/src/b.rs: impl of A; move it to a/src/a.rs, or make it functions"]
        );
    }

    #[test]
    fn impls_of_traits_stand_with_the_type_or_the_trait() {
        let b = "use super::a::A;\npub trait Walk {}\nimpl Walk for A {}\n\
                 impl From<A> for u8 {}\nfn walk(walk: impl Walk) -> impl Walk { walk }\n";
        let modules = [("a", "pub struct A;\nimpl Clone for A {}\n"), ("b", b)];
        assert_eq!(findings(&modules), Findings::new());
        let stray = "use super::{a::A, b::Walk};\nimpl Walk for A {}\n";
        let modules = [
            ("a", "pub struct A;\n"),
            ("b", "pub trait Walk {}\n"),
            ("c", stray),
        ];
        assert_eq!(
            findings(&modules),
            ["a/src/c.rs: impl of A; move it to a/src/a.rs, or make it functions"]
        );
    }

    #[test]
    fn a_parent_and_its_child_that_use_each_other_are_found() {
        // The old patterns: a builder, a shared type, and a type cut over several files.
        let builder = "use super::Plane;\npub struct Builder;\n\
                       impl Builder { pub fn build() -> Plane { Plane } }\n";
        let plane = "mod builder;\nuse builder::Builder;\npub struct Plane;\n\
                     impl Plane { pub fn builder() -> Builder { Builder } }\n";
        let catalogue = "mod pods;\npub struct Scenario;\n\
                         fn all() -> [Scenario; 1] { pods::SCENARIOS }\n";
        let pods = "use super::Scenario;\npub const SCENARIOS: [Scenario; 1] = [Scenario];\n";
        let run = "mod ending;\npub struct Run;\nfn fire(run: &mut Run) { run.end() }\n";
        let ending = "use super::Run;\nimpl Run { pub fn end(&mut self) {} }\n";
        let old = [
            [("plane", plane), ("plane/builder", builder)],
            [("catalogue", catalogue), ("catalogue/pods", pods)],
            [("run", run), ("run/ending", ending)],
        ];
        for modules in old {
            let found = findings(&modules);
            let (parent, child) = (modules[0].0, modules[1].0);
            let name = child.rsplit('/').next().unwrap_or_default();
            let is_loop = |line: &String| {
                line.starts_with(&format!(
                    "a/src/lib.rs: loop in crate::{parent}: {name}, self;"
                ))
            };
            assert!(found.iter().any(is_loop), "{found:?}");
        }
    }

    #[test]
    fn a_crowded_level_is_found() {
        let names: Vec<String> = (0..=MODULES_MAX).map(|index| format!("m{index}")).collect();
        let modules: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        assert_eq!(findings(&modules[1..]), Findings::new());
        assert_eq!(
            findings(&modules),
            ["a/src/lib.rs: 26 modules on one level, in crate; group them, 25 is the most"]
        );
    }
}
