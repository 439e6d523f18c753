//! The modules of a crate, the paths by which they name each other, and their impl blocks. Test code
//! is left out.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::tokens::{
    Segments, attribute, functions, impl_block, is_punct, is_test_gate, item_length,
    path_attribute, simple_path, trees, type_declaration, use_paths,
};
use crate::reachable;

/// One crate as its source says it.
#[derive(Debug, Default)]
pub(super) struct Crate {
    /// The file of each module.
    pub(super) modules: BTreeMap<Segments, String>,
    /// Files that are no Rust.
    pub(super) unreadable: Vec<String>,
    pub(super) paths: Vec<NamedPath>,
    /// The paths that a module has imported, by module and name.
    pub(super) aliases: BTreeMap<(Segments, String), Segments>,
    /// The paths of which a module imports all names.
    pub(super) globs: BTreeMap<Segments, Vec<Segments>>,
    /// The types and traits that each module declares, with the paths that their fields name.
    pub(super) types: BTreeMap<(Segments, String), Vec<Segments>>,
    pub(super) impls: Vec<Impl>,
    /// The names that each module uses after a dot or in a path: the methods that it may call.
    pub(super) calls: BTreeMap<Segments, BTreeSet<String>>,
}

/// A path in a module, from the root.
#[derive(Debug)]
pub(super) struct NamedPath {
    pub(super) module: Segments,
    pub(super) path: Segments,
    /// True for `pub use`.
    pub(super) is_export: bool,
}

/// An impl block.
#[derive(Debug)]
pub(super) struct Impl {
    pub(super) module: Segments,
    /// The path of the type from the root, before aliases are followed.
    pub(super) of: Segments,
    /// The path of the trait from the root, before aliases are followed; empty for an inherent block.
    pub(super) of_trait: Segments,
    /// The methods with their bodies.
    pub(super) methods: BTreeMap<String, String>,
}

/// A file that is still to be read: its path, whether it is the root, and its module.
struct Pending {
    path: String,
    is_root: bool,
    module: Segments,
}

impl Crate {
    /// Reads the crate with this root file. Modules behind `cfg(test)` are left
    /// out, and so is other code behind it.
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
            found.modules.insert(file.module.clone(), file.path.clone());
            let mut scan = Scan {
                found: &mut found,
                file: &file,
                declared: Vec::new(),
            };
            scan.walk(&trees(tokens), &file.module);
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
            let before = at.checked_sub(1).and_then(|before| tokens.get(before));
            match token {
                TokenTree::Ident(word) if word == "mod" => {
                    at += self.module(&tokens[at + 1..], module, path.take());
                }
                TokenTree::Ident(word) if word == "use" => {
                    at += self.import(&tokens[at + 1..], module, is_visible(before));
                }
                TokenTree::Ident(name) if is_punct(before, '.') => self.call(name, module),
                TokenTree::Ident(_) if !is_in_path(&tokens[..at]) => {
                    if is_item_start(before) || is_visible(before) {
                        self.block(&tokens[at..], module);
                        self.declaration(&tokens[at..], module);
                    }
                    let (named, length) = simple_path(&tokens[at..]);
                    if let [_, .., last] = named.as_slice() {
                        self.call(last, module);
                        self.name(module, &named, false);
                    }
                    at += length - 1;
                }
                TokenTree::Group(_) if is_word(before, "pub") => {}
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
        let module: Segments = around.iter().cloned().chain([name.to_string()]).collect();
        // The path of a separate file replaces this one when it is read.
        let file = self.file.path.clone();
        match rest.get(1) {
            Some(TokenTree::Group(body)) => {
                self.found.modules.insert(module.clone(), file);
                self.walk(&trees(body.stream()), &module);
            }
            Some(token) if is_punct(Some(token), ';') => {
                self.found.modules.insert(module.clone(), file);
                self.declared.push((module, path));
            }
            _ => return 0,
        }
        2
    }

    /// Takes note of the imports of a `use`, and returns how many tokens they are.
    fn import(&mut self, rest: &[TokenTree], module: &[String], is_export: bool) -> usize {
        let end = rest.iter().position(|token| is_punct(Some(token), ';'));
        let tree = &rest[..end.unwrap_or(rest.len())];
        for (imported, name) in use_paths(tree) {
            self.name(module, &imported, is_export);
            let path = absolute(module, &imported);
            if name == "*" {
                let globs = self.found.globs.entry(module.to_vec()).or_default();
                globs.push(path);
            } else {
                self.found.aliases.insert((module.to_vec(), name), path);
            }
        }
        tree.len()
    }

    /// Takes note of a name that may be a called method.
    fn call(&mut self, name: &impl ToString, module: &[String]) {
        let calls = self.found.calls.entry(module.to_vec()).or_default();
        calls.insert(name.to_string());
    }

    /// Takes note of the impl block that these tokens begin with, if they do.
    fn block(&mut self, tokens: &[TokenTree], module: &[String]) {
        if let Some(block) = impl_block(tokens).filter(|block| !block.of.is_empty()) {
            self.found.impls.push(Impl {
                module: module.to_vec(),
                of: without_mark(absolute(module, &block.of)),
                of_trait: match block.of_trait.as_slice() {
                    [] => Segments::new(),
                    path => without_mark(absolute(module, path)),
                },
                methods: functions(&block.body),
            });
        }
    }

    /// Takes note of the type or trait that these tokens declare, if they do.
    fn declaration(&mut self, tokens: &[TokenTree], module: &[String]) {
        if let Some((name, fields)) = type_declaration(tokens) {
            let fields = fields.iter().map(|path| absolute(module, path)).collect();
            self.found.types.insert((module.to_vec(), name), fields);
        }
    }

    fn name(&mut self, module: &[String], path: &[String], is_export: bool) {
        self.found.paths.push(NamedPath {
            module: module.to_vec(),
            path: absolute(module, path),
            is_export,
        });
    }
}

/// A mark in a path: the next name may be one of another crate.
pub(super) const MAYBE_OUTSIDE: &str = "?";

/// Returns a path from the root of the crate.
fn absolute(module: &[String], path: &[String]) -> Segments {
    let supers = path.iter().take_while(|it| *it == "super").count();
    let outer = &module[..module.len().saturating_sub(supers)];
    let mark = [MAYBE_OUTSIDE.to_owned()];
    let (base, mark, rest): (&[String], &[String], &[String]) = match path.first() {
        Some(first) if first == "crate" => (&[], &[], &path[1..]),
        Some(first) if first == "self" => (module, &[], &path[1..]),
        Some(first) if first == "super" => (outer, &[], &path[supers..]),
        _ => (module, &mark, path),
    };
    base.iter().chain(mark).chain(rest).cloned().collect()
}

/// Returns the path of a type of this crate.
fn without_mark(path: Segments) -> Segments {
    path.into_iter().filter(|it| it != MAYBE_OUTSIDE).collect()
}

fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(found)) if found == word)
}

/// Returns true if a path goes on after these tokens.
fn is_in_path(before: &[TokenTree]) -> bool {
    let is_colon = |token| is_punct(Some(token), ':');
    before.len() > 1 && before.iter().rev().take(2).all(is_colon)
}

/// Returns true if an item may follow this token.
fn is_item_start(before: Option<&TokenTree>) -> bool {
    match before {
        Some(TokenTree::Group(group)) => group.delimiter() != Delimiter::Parenthesis,
        before => before.is_none() || is_punct(before, ';'),
    }
}

/// Returns true if the token before `use` is a visibility.
fn is_visible(before: Option<&TokenTree>) -> bool {
    match before {
        Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::Parenthesis,
        before => is_word(before, "pub"),
    }
}
