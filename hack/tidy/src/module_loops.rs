//! The crates of the test control plane have no loops between their modules, and few modules.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Findings, budgets::is_test_file, layout::CRATES, repository::SourceFile};

/// The folder whose crates are checked.
const CHECKED: &str = "test-control-plane";

/// Most top-level modules of a crate.
const MODULES_MAX: usize = 25;

/// The top-level modules of a crate, each with those that it names.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Finds loops between the top-level modules of a crate, and crates with too many of them.
pub fn check(files: &[SourceFile]) -> Findings {
    let mut findings = Findings::new();
    for (folder, _) in CRATES
        .iter()
        .filter(|(folder, _)| folder.starts_with(CHECKED))
    {
        let root = format!("crates/{folder}/src/");
        let graph = graph(&root, files);
        if graph.len() > MODULES_MAX {
            findings.push(format!(
                "crates/{folder}: {} top-level modules, {MODULES_MAX} is the most",
                graph.len()
            ));
        }
        let rest = without_ends(graph);
        if !rest.is_empty() {
            let names: Vec<&str> = rest.keys().map(String::as_str).collect();
            findings.push(format!(
                "crates/{folder}: modules import each other in a loop: {}",
                names.join(", ")
            ));
        }
    }
    findings
}

/// What each top-level module names, tests aside.
fn graph(root: &str, files: &[SourceFile]) -> Graph {
    let mut graph = Graph::new();
    for file in files.iter().filter(|file| !is_test_file(&file.path)) {
        let Some(path) = file.path.strip_prefix(root) else {
            continue;
        };
        if path == "lib.rs" || path.starts_with("bin/") || !file.has_extension("rs") {
            continue;
        }
        let parts: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
        let named = graph.entry(parts[0].to_owned()).or_default();
        let code = file.text.split("#[cfg(test)]\nmod tests {").next();
        let lines = code.unwrap_or_default().lines();
        for line in lines.filter(|line| !line.trim_start().starts_with("//")) {
            named.extend(names(line, "crate::").map(str::to_owned));
            let outwards = "super::".repeat(parts.len());
            named.extend(names(line, &outwards).map(str::to_owned));
        }
        named.remove(parts[0]);
    }
    let modules: BTreeSet<String> = graph.keys().cloned().collect();
    for named in graph.values_mut() {
        named.retain(|name| modules.contains(name));
    }
    graph
}

/// The words that stand behind `prefix`.
fn names<'a>(line: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(prefix).flat_map(move |(at, _)| {
        let is_part = line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        let rest = &line[at + prefix.len()..];
        let rest = if is_part { "" } else { rest };
        let list = rest
            .strip_prefix('{')
            .and_then(|list| list.split('}').next());
        list.unwrap_or(rest.split([',', ';', ' ']).next().unwrap_or_default())
            .split(',')
            .filter_map(|path| path.trim().split("::").next())
    })
}

/// What is left of the graph without the modules that name no others: the loops, and what leads
/// to them.
fn without_ends(mut graph: Graph) -> Graph {
    loop {
        let ends: BTreeSet<String> = graph
            .iter()
            .filter(|(_, named)| named.is_empty())
            .map(|(name, _)| name.clone())
            .collect();
        if ends.is_empty() {
            return graph;
        }
        graph.retain(|name, _| !ends.contains(name));
        for named in graph.values_mut() {
            named.retain(|name| !ends.contains(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str, text: &str) -> SourceFile {
        SourceFile::new(
            &format!("crates/test-control-plane/api/src/{name}.rs"),
            text,
        )
    }

    #[test]
    fn modules_in_one_direction_pass() {
        let files = [
            module("a", "use crate::b::X;\nuse crate::{c, d::Y};\n"),
            module("b", "use super::c::Z;\n"),
            module(
                "b/inner",
                "use super::a;\n#[cfg(test)]\nmod tests {\nuse crate::a;\n}\n",
            ),
            module("c", "// see crate::a\n"),
            module("d", "use kube_test_control_plane_api::a;\n"),
        ];
        assert_eq!(check(&files), Findings::new());
    }

    #[test]
    fn a_loop_is_found() {
        let files = [
            module("a", "use crate::b::X;\n"),
            module("b/inner", "use super::super::c;\n"),
            module("c", "fn f() { crate::a::f() }\n"),
            module("d", ""),
        ];
        assert_eq!(
            check(&files),
            ["crates/test-control-plane/api: modules import each other in a loop: a, b, c"]
        );
    }

    #[test]
    fn a_crate_with_too_many_modules_is_found() {
        let files: Vec<SourceFile> = (0..26).map(|i| module(&format!("m{i}"), "")).collect();
        assert_eq!(
            check(&files),
            ["crates/test-control-plane/api: 26 top-level modules, 25 is the most"]
        );
    }
}
