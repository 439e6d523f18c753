//! The modules of a crate and the paths by which they name each other, test code aside.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::reachable;

/// The top-level modules that each top-level module names, with a file that does.
pub(super) type Graph = BTreeMap<String, BTreeMap<String, String>>;

/// The first words of items and statements, after the visibility. An item ends with `;` or a block.
const ITEMS: [&str; 13] = [
    "mod", "use", "fn", "struct", "enum", "impl", "trait", "const", "static", "type", "async",
    "let", "extern",
];

/// The segments of a path, `["crate", "rest", "watch"]`.
type Segments = Vec<String>;

/// One crate as its source says it.
#[derive(Debug, Default)]
pub(super) struct Crate {
    /// The modules of each level, by the path of the module that declares them.
    pub(super) levels: BTreeMap<String, BTreeSet<String>>,
    /// Files that are no Rust.
    pub(super) unreadable: Vec<String>,
    /// Every path that a module names, from the root: module, file, path.
    named: Vec<(Segments, String, Segments)>,
}

/// A file that is still to be read: its path, whether it is the root, and its module.
struct Pending {
    path: String,
    is_root: bool,
    module: Segments,
}

impl Crate {
    /// Reads the crate with this root file. Modules behind `cfg(test)` or a `testing` feature are
    /// left out, and so is other code behind them.
    pub(super) fn read<'a>(root: &str, read: &dyn Fn(&str) -> Option<&'a str>) -> Self {
        let mut found = Self::default();
        let mut open = vec![Pending {
            path: root.to_owned(),
            is_root: true,
            module: Segments::new(),
        }];
        while let Some(file) = open.pop() {
            let Some(text) = read(&file.path) else {
                continue;
            };
            let Ok(tokens) = text.parse::<TokenStream>() else {
                found.unreadable.push(file.path);
                continue;
            };
            let mut scan = Scan {
                found: &mut found,
                file: &file,
                declared: Vec::new(),
            };
            let tokens: Vec<TokenTree> = tokens.into_iter().collect();
            scan.walk(&tokens, &file.module);
            open.extend(scan.declared.into_iter().flat_map(|(module, path)| {
                let inner = &module[file.module.len()..];
                let paths =
                    reachable::module_files(&file.path, file.is_root, inner, path.as_deref());
                paths.into_iter().map(move |path| Pending {
                    path,
                    is_root: false,
                    module: module.clone(),
                })
            }));
        }
        found
    }

    /// The imports between the modules of the top level. A name that the root re-exports stands for
    /// the module that it comes from.
    pub(super) fn graph(&self) -> Graph {
        let none = BTreeSet::new();
        let top = self.levels.get("").unwrap_or(&none);
        let exports: BTreeMap<&str, &str> = self
            .named
            .iter()
            .filter(|(module, _, path)| module.is_empty() && path.len() > 1)
            .filter_map(|(_, _, path)| Some((path.last()?.as_str(), path.first()?.as_str())))
            .filter(|(_, module)| top.contains(*module))
            .collect();
        let mut graph = Graph::new();
        for (module, file, path) in &self.named {
            let (Some(from), Some(first)) = (module.first(), path.first()) else {
                continue;
            };
            let target = match exports.get(first.as_str()) {
                _ if top.contains(first) => first.as_str(),
                Some(module) => *module,
                None => continue,
            };
            if target != from {
                let targets = graph.entry(from.clone()).or_default();
                targets
                    .entry(target.to_owned())
                    .or_insert_with(|| file.clone());
            }
        }
        graph
    }
}

/// The walk through one file.
struct Scan<'a> {
    found: &'a mut Crate,
    file: &'a Pending,
    /// Modules in separate files, with the path of their attribute.
    declared: Vec<(Segments, Option<String>)>,
}

impl Scan<'_> {
    fn walk(&mut self, tokens: &[TokenTree], module: &[String]) {
        let mut at = 0;
        let mut path = None;
        while let Some(token) = tokens.get(at) {
            if let Some((attribute, length, is_inner)) = attribute(&tokens[at..]) {
                at += length;
                if !is_test_gate(&attribute) {
                    path = path.or_else(|| path_attribute(&attribute));
                } else if is_inner {
                    return;
                } else {
                    at += item_length(&tokens[at..]);
                }
                continue;
            }
            let rest = &tokens[at + 1..];
            match token {
                TokenTree::Ident(word) if word == "mod" => {
                    at += self.module(rest, module, path.take());
                }
                TokenTree::Ident(word) if word == "use" => {
                    let end = rest.iter().position(|token| is_punct(Some(token), ';'));
                    let tree = &rest[..end.unwrap_or(rest.len())];
                    for imported in use_paths(tree) {
                        self.name(module, &imported, true);
                    }
                    at += tree.len();
                }
                TokenTree::Ident(word) if word == "crate" || word == "super" => {
                    let (named, length) = simple_path(&tokens[at..]);
                    self.name(module, &named, false);
                    at += length - 1;
                }
                TokenTree::Group(group) => self.walk(&trees(group.stream()), module),
                TokenTree::Punct(_) | TokenTree::Literal(_) | TokenTree::Ident(_) => {}
            }
            at += 1;
        }
    }

    /// Takes note of the module that these tokens name, and returns how many of them it is.
    fn module(&mut self, rest: &[TokenTree], around: &[String], path: Option<String>) -> usize {
        let Some(TokenTree::Ident(name)) = rest.first() else {
            return 0;
        };
        let name = name.to_string();
        let module: Segments = around.iter().chain([&name]).cloned().collect();
        match rest.get(1) {
            Some(TokenTree::Group(body)) => self.walk(&trees(body.stream()), &module),
            Some(token) if is_punct(Some(token), ';') => self.declared.push((module, path)),
            _ => return 0,
        }
        let level = self.found.levels.entry(around.join("::")).or_default();
        level.insert(name);
        2
    }

    /// Takes note of a path, if it leads into this crate.
    fn name(&mut self, module: &[String], path: &[String], is_import: bool) {
        let supers = path
            .iter()
            .take_while(|segment| *segment == "super")
            .count();
        let (base, rest): (&[String], &[String]) = match path.first().map(String::as_str) {
            Some("crate") => (&[], &path[1..]),
            Some("self") => (module, &path[1..]),
            Some("super") if supers <= module.len() => {
                (&module[..module.len() - supers], &path[supers..])
            }
            // In the root, `use` may name a module as it is.
            Some(_) if is_import && module.is_empty() => (&[], path),
            _ => return,
        };
        let absolute = base.iter().chain(rest).cloned().collect();
        self.found
            .named
            .push((module.to_vec(), self.file.path.clone(), absolute));
    }
}

/// The attribute at the start of these tokens: the tokens in its brackets, its length in tokens,
/// and whether it is one of the whole module.
fn attribute(tokens: &[TokenTree]) -> Option<(Vec<TokenTree>, usize, bool)> {
    if !is_punct(tokens.first(), '#') {
        return None;
    }
    let is_inner = is_punct(tokens.get(1), '!');
    let at = 1 + usize::from(is_inner);
    match tokens.get(at)? {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
            Some((trees(group.stream()), at + 1, is_inner))
        }
        _ => None,
    }
}

/// `cfg(test)`, `cfg(any(test, feature = "testing"))`.
fn is_test_gate(attribute: &[TokenTree]) -> bool {
    let [TokenTree::Ident(name), TokenTree::Group(condition)] = attribute else {
        return false;
    };
    let words = condition.to_string();
    let mut words = words.split(|c: char| !c.is_alphanumeric());
    name == "cfg"
        && words
            .clone()
            .any(|word| word == "test" || word == "testing")
        && !words.any(|word| word == "not")
}

/// The file that `#[path = "x.rs"]` names.
fn path_attribute(attribute: &[TokenTree]) -> Option<String> {
    match attribute {
        [TokenTree::Ident(name), _, TokenTree::Literal(file)] if name == "path" => {
            Some(file.to_string().trim_matches('"').to_owned())
        }
        _ => None,
    }
}

/// The length in tokens of the first item, statement, field or arm.
fn item_length(tokens: &[TokenTree]) -> usize {
    let attributes = std::iter::successors(Some(0), |at| {
        attribute(&tokens[*at..]).map(|(_, length, _)| at + length)
    });
    let start = attributes.last().unwrap_or_default();
    let tokens = &tokens[start..];
    let is_item = tokens.iter().take(3).any(
        |token| matches!(token, TokenTree::Ident(word) if ITEMS.iter().any(|item| word == item)),
    );
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => is_punct(Some(token), ';') || (!is_item && is_punct(Some(token), ',')),
    };
    let end = tokens.iter().position(ends);
    start + end.map_or(tokens.len(), |end| end + 1)
}

/// The path of plain segments at the beginning of these tokens, and how many tokens it is.
fn simple_path(tokens: &[TokenTree]) -> (Segments, usize) {
    let mut path = Segments::new();
    let mut at = 0;
    while let Some(TokenTree::Ident(segment)) = tokens.get(at) {
        path.push(segment.to_string());
        at += 1;
        if !(is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')) {
            break;
        }
        if !matches!(tokens.get(at + 2), Some(TokenTree::Ident(_))) {
            break;
        }
        at += 2;
    }
    (path, at)
}

/// Every path that a `use` tree imports; a rename takes the place of the last segment.
fn use_paths(tree: &[TokenTree]) -> Vec<Segments> {
    let tree = match tree {
        [TokenTree::Punct(first), TokenTree::Punct(_), rest @ ..] if first.as_char() == ':' => rest,
        tree => tree,
    };
    let (mut prefix, length) = simple_path(tree);
    let tail = tree.get(length..).unwrap_or_default();
    match tail.last() {
        Some(TokenTree::Group(group)) => {
            let inner = trees(group.stream());
            let parts = inner.split(|token| is_punct(Some(token), ','));
            parts
                .filter(|part| !part.is_empty())
                .flat_map(use_paths)
                .map(|path| prefix.iter().cloned().chain(path).collect())
                .collect()
        }
        Some(TokenTree::Ident(alias)) if tail.len() == 2 => {
            prefix.push(alias.to_string());
            vec![prefix]
        }
        _ => vec![prefix],
    }
}

fn is_punct(token: Option<&TokenTree>, expected: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == expected)
}

fn trees(stream: TokenStream) -> Vec<TokenTree> {
    stream.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The edges of a crate with these files, as `from → to`.
    fn edges(files: &[(&str, &str)]) -> Vec<String> {
        let read = |path: &str| {
            let file = files.iter().find(|(name, _)| format!("src/{name}") == path);
            file.map(|(_, text)| *text)
        };
        let graph = Crate::read("src/lib.rs", &read).graph();
        let edges = graph.iter().flat_map(|(from, targets)| {
            targets
                .keys()
                .map(move |target| format!("{from} → {target}"))
        });
        edges.collect()
    }

    const ROOT: (&str, &str) = ("lib.rs", "pub mod a;\nmod b;\nmod c;\nmod d;\n");

    #[test]
    fn nested_use_lists_are_read() {
        let a = "use crate::{b::{x, y::{self, Z}}, c as e};\nuse super::d::*;\n";
        assert_eq!(edges(&[ROOT, ("a.rs", a)]), ["a → b", "a → c", "a → d"]);
    }

    #[test]
    fn paths_in_bodies_types_and_macros_are_read() {
        let a = "fn f(x: crate::b::X) { println!(\"{}\", super::c::y::<u8>()); }\n";
        assert_eq!(edges(&[ROOT, ("a.rs", a)]), ["a → b", "a → c"]);
    }

    #[test]
    fn super_is_counted_from_the_module_of_the_file() {
        let files = [
            ROOT,
            ("a.rs", "mod inner;\nmod near { use super::inner::X; }\n"),
            ("a/inner.rs", "use super::super::b::B;\nuse super::near;\n"),
        ];
        assert_eq!(edges(&files), ["a → b"]);
    }

    #[test]
    fn a_name_of_the_root_stands_for_the_module_that_it_comes_from() {
        let root = "mod a;\nmod b;\npub use b::deep::{Thing, Other as Renamed};\n";
        let files = [("lib.rs", root), ("a.rs", "use crate::Renamed;\n")];
        assert_eq!(edges(&files), ["a → b"]);
    }

    #[test]
    fn test_code_is_left_out() {
        let a = "\
            #[cfg(test)]\nuse crate::b::B;\n\
            #[cfg(any(test, feature = \"testing\"))]\nimpl X { fn f() { crate::b::f() } }\n\
            #[cfg(test)]\n#[derive(Debug)]\npub(crate) struct S<A, B>(crate::b::A, B);\n\
            struct T {\n    #[cfg(test)]\n    field: Vec<crate::b::B>,\n    kept: crate::c::C,\n}\n\
            #[cfg(not(test))]\nuse crate::d::D;\n\
            #[cfg(test)]\nmod tests;\n";
        let files = [ROOT, ("a.rs", a), ("a/tests.rs", "use crate::b::B;\n")];
        assert_eq!(edges(&files), ["a → c", "a → d"]);
        let gated = [ROOT, ("a.rs", "#![cfg(test)]\nuse crate::b::B;\n")];
        assert_eq!(edges(&gated), Vec::<String>::new());
    }

    #[test]
    fn comments_strings_and_other_crates_are_no_imports() {
        let a = "//! See [`crate::b`].\n// crate::b::x\nconst X: &str = \"crate::b::x\";\n\
                 use std::fmt;\nuse other::b::c;\n";
        assert_eq!(edges(&[ROOT, ("a.rs", a)]), Vec::<String>::new());
    }

    #[test]
    fn files_that_attributes_name_are_read() {
        let root = "#[path = \"other.rs\"]\nmod a;\nmod b;\n";
        let files = [("lib.rs", root), ("other.rs", "use crate::b;\n")];
        assert_eq!(edges(&files), ["a → b"]);
    }

    #[test]
    fn a_file_that_is_no_rust_is_named() {
        let read = |path: &str| (path == "src/lib.rs").then_some("fn f( {");
        assert_eq!(Crate::read("src/lib.rs", &read).unreadable, ["src/lib.rs"]);
    }
}
