//! Reachability of every Rust file from the root of a target.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use crate::{
    Findings,
    metadata::Metadata,
    repository::{SourceFile, folder, join},
};

/// Root files of every target of the workspace, as paths from `root`.
pub fn roots(metadata: &Metadata, root: &Path) -> BTreeSet<String> {
    roots_of(metadata, root, |_| true)
}

/// Root files of the workspace's libraries and binaries.
pub fn crate_roots(metadata: &Metadata, root: &Path) -> BTreeSet<String> {
    roots_of(metadata, root, |kind| kind == "lib" || kind == "bin")
}

fn roots_of(metadata: &Metadata, root: &Path, chosen: fn(&str) -> bool) -> BTreeSet<String> {
    metadata
        .members()
        .values()
        .flat_map(|package| &package.targets)
        .filter(|target| target.kind.iter().any(|kind| chosen(kind)))
        .filter_map(|target| Path::new(&target.src_path).strip_prefix(root).ok())
        .map(|path| path.to_string_lossy().replace('\\', "/"))
        .collect()
}

/// Finds the Rust files outside every target.
pub fn check(files: &[SourceFile], roots: &BTreeSet<String>) -> Findings {
    let by_path: BTreeMap<&str, &SourceFile> = files
        .iter()
        .map(|file| (file.path.as_str(), file))
        .collect();
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let mut open: Vec<(String, bool)> = roots.iter().map(|root| (root.clone(), true)).collect();
    while let Some((path, is_root)) = open.pop() {
        let Some(file) = by_path.get(path.as_str()) else {
            continue;
        };
        if !reached.insert(path.clone()) {
            continue;
        }
        let modules = modules(&file.text)
            .into_iter()
            .flat_map(|found| module_files(&path, is_root, &found.module, found.file.as_deref()));
        let included = included(&file.text).map(|name| join(folder(&path), name));
        open.extend(modules.chain(included).map(|path| (path, false)));
    }
    files
        .iter()
        .filter(|file| file.has_extension("rs") && !reached.contains(&file.path))
        .map(|file| format!("{}: no mod line declares it", file.path))
        .collect()
}

/// A `mod x;` line: its name after those of the inline modules around it, and the file that
/// `#[path]` gives.
struct Declaration {
    module: Vec<String>,
    file: Option<String>,
}

/// The `mod x;` lines of formatted code, with the inline modules around them.
fn modules(text: &str) -> Vec<Declaration> {
    let mut found = Vec::new();
    let mut around: Vec<(usize, String)> = Vec::new();
    let mut file: Option<String> = None;
    for line in text.lines() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if code.starts_with('}') && around.last().is_some_and(|(outer, _)| *outer == indent) {
            around.pop();
        }
        if let Some((_, rest)) = code
            .split_once("path = \"")
            .filter(|_| code.starts_with("#["))
        {
            file = rest.split('"').next().map(str::to_owned);
            continue;
        }
        let Some(name) = module_name(code) else {
            if !code.starts_with("#[") && !code.starts_with("//") {
                file = None;
            }
            continue;
        };
        if let Some(name) = name.strip_suffix(';') {
            let around = around.iter().map(|(_, name)| name.clone());
            found.push(Declaration {
                module: around.chain([name.to_owned()]).collect(),
                file: file.take(),
            });
        } else if let Some(name) = name.strip_suffix(" {") {
            around.push((indent, name.to_owned()));
        }
    }
    found
}

/// The part after `mod ` in a line that declares a module.
fn module_name(code: &str) -> Option<&str> {
    let code = match code.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => code,
    };
    code.strip_prefix("mod ")
}

/// Possible files of a module declared in the file at `path`: the file of its attribute, or its name
/// after those of the inline modules around it.
pub fn module_files(
    path: &str,
    is_root: bool,
    module: &[String],
    file: Option<&str>,
) -> Vec<String> {
    let beside = folder(path);
    if let Some(file) = file {
        return vec![join(beside, file)];
    }
    let own = if is_root || path.ends_with("/mod.rs") {
        beside.to_owned()
    } else {
        path.trim_end_matches(".rs").to_owned()
    };
    let module = join(&own, &module.join("/"));
    vec![format!("{module}.rs"), format!("{module}/mod.rs")]
}

/// Rust files named by `include!`.
fn included(text: &str) -> impl Iterator<Item = &str> {
    text.split("include!(\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_inline_modules_and_paths_are_followed() {
        let files = [
            SourceFile::new(
                "a/src/lib.rs",
                "//! A.\nmod x;\npub(crate) mod y;\nmod z {\n    mod w;\n}\n",
            ),
            SourceFile::new("a/src/x.rs", "//! X.\n#[cfg(test)]\nmod tests;\n"),
            SourceFile::new("a/src/x/tests.rs", "//! T.\n"),
            SourceFile::new(
                "a/src/y.rs",
                "//! Y.\n#[path = \"other.rs\"]\nmod p;\ninclude!(\"q.rs\");\n",
            ),
            SourceFile::new("a/src/other.rs", "//! P.\n"),
            SourceFile::new("a/src/q.rs", "//! Q.\n"),
            SourceFile::new("a/src/z/w.rs", "//! W.\n"),
            SourceFile::new("a/tests/t.rs", "//! T.\nmod support;\n"),
            SourceFile::new("a/tests/support/mod.rs", "//! S.\nmod deep;\n"),
            SourceFile::new("a/tests/support/deep.rs", "//! D.\n"),
        ];
        let roots = ["a/src/lib.rs", "a/tests/t.rs"].map(str::to_owned).into();
        assert_eq!(check(&files, &roots), Findings::new());
    }

    #[test]
    fn undeclared_files_are_found() {
        let files = [
            SourceFile::new("a/src/lib.rs", "//! A.\n// mod x;\n"),
            SourceFile::new("a/src/x.rs", "//! X.\n"),
        ];
        let roots = BTreeSet::from(["a/src/lib.rs".to_owned()]);
        assert_eq!(
            check(&files, &roots),
            ["a/src/x.rs: no mod line declares it"]
        );
    }
}
