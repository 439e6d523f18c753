//! The edges between the modules of a crate, from the paths and methods that they name.

use std::collections::{BTreeMap, BTreeSet};

use super::scan::{Crate, Impl, MAYBE_OUTSIDE};
use super::tokens::Segments;

/// The modules that each module of a level depends on, with a file that does.
pub(super) type Graph = BTreeMap<String, BTreeMap<String, String>>;

/// Limit of aliases and glob imports that lead to another one.
const ALIASES_MAX: usize = 8;

/// A type with its module.
type Type = (Segments, String);

/// The dependencies of a crate's modules.
pub(super) struct Edges<'a> {
    found: &'a Crate,
    /// Module, file, target.
    edges: BTreeSet<(Segments, String, Segments)>,
}

/// An impl block outside of its type's file.
pub(super) struct Stray {
    pub(super) file: String,
    pub(super) of: String,
    /// The file of the type.
    pub(super) home: String,
}

impl<'a> Edges<'a> {
    pub(super) fn of(found: &'a Crate) -> Self {
        let mut edges = Self {
            found,
            edges: BTreeSet::new(),
        };
        let mut named: BTreeMap<&Segments, BTreeSet<Type>> = BTreeMap::new();
        for path in &found.paths {
            let Some((target, item)) = resolve(found, &path.path, ALIASES_MAX) else {
                continue;
            };
            let is_own = path.is_export && target.starts_with(&path.module);
            if !is_own {
                edges.add(&path.module, &target);
            }
            named
                .entry(&path.module)
                .or_default()
                .extend(item.map(|item| (target, item)));
        }
        for (module, name) in found.types.keys() {
            let own = (module.clone(), name.clone());
            named.entry(module).or_default().insert(own);
        }
        for types in named.values_mut() {
            add_fields(found, types);
        }
        edges.add_calls(&named);
        edges
    }

    /// Adds the calls of methods that stand outside of their type's module. A module may call those of
    /// each type that it names, and of their fields.
    fn add_calls(&mut self, named: &BTreeMap<&Segments, BTreeSet<Type>>) {
        let found = self.found;
        let blocks: Vec<(Type, &Impl)> = (found.impls.iter())
            .filter_map(|block| Some((type_of(found, &block.of)?, block)))
            .collect();
        for (of, block) in &blocks {
            if !block.of_trait.is_empty() || of.0 == block.module {
                continue;
            }
            for (module, calls) in &found.calls {
                let knows = named.get(module).is_some_and(|named| named.contains(of))
                    || blocks
                        .iter()
                        .any(|(other, it)| other == of && it.module == *module);
                if knows && block.methods.keys().any(|method| calls.contains(method)) {
                    self.add(module, &block.module);
                }
            }
        }
    }

    fn add(&mut self, from: &Segments, to: &Segments) {
        if from != to
            && let Some(file) = self.found.modules.get(from)
        {
            self.edges.insert((from.clone(), file.clone(), to.clone()));
        }
    }

    /// Returns the graph of the modules directly in a module. Its own file is one of them, with the
    /// name `self`.
    pub(super) fn level(&self, level: &[String]) -> Graph {
        let mut graph = Graph::new();
        for (from, file, to) in &self.edges {
            if !from.starts_with(level) || !to.starts_with(level) {
                continue;
            }
            let node = |module: &Segments| {
                let name = module.get(level.len()).cloned();
                name.unwrap_or_else(|| "self".to_owned())
            };
            let (from, to) = (node(from), node(to));
            if from != to {
                let targets = graph.entry(from).or_default();
                targets.entry(to).or_insert_with(|| file.clone());
            }
        }
        graph
    }
}

/// Returns the impl blocks outside of their type's file. That of a trait may stand in the trait's
/// file, or in a module of the type's module.
pub(super) fn strays(found: &Crate) -> Vec<Stray> {
    let strays = found.impls.iter().filter_map(|block| {
        let (home_module, of) = type_of(found, &block.of)?;
        let file = found.modules.get(&block.module)?;
        let home = found.modules.get(&home_module)?;
        let of_trait = type_of(found, &block.of_trait);
        let trait_home = of_trait.and_then(|(module, _)| found.modules.get(&module));
        let is_inside = !block.of_trait.is_empty() && block.module.starts_with(&home_module);
        (file != home && Some(file) != trait_home && !is_inside).then(|| Stray {
            file: file.clone(),
            of,
            home: home.clone(),
        })
    });
    strays.collect()
}

/// A method of a type and another one of the same name, of a trait, which does something else.
pub(super) struct Double {
    pub(super) file: String,
    pub(super) of: String,
    pub(super) method: String,
}

pub(super) fn doubles(found: &Crate) -> Vec<Double> {
    let mut own: BTreeMap<(Type, &str), &str> = BTreeMap::new();
    let (mut of_traits, mut doubles) = (Vec::new(), Vec::new());
    for block in &found.impls {
        let Some(of) = type_of(found, &block.of) else {
            continue;
        };
        for (name, body) in &block.methods {
            if block.of_trait.is_empty() {
                own.insert((of.clone(), name), body);
            } else {
                of_traits.push((block, of.clone(), name, body));
            }
        }
    }
    for (block, of, name, body) in of_traits {
        let method = (of, name.as_str());
        if own.get(&method).is_some_and(|own| own != body)
            && let Some(file) = found.modules.get(&block.module)
        {
            doubles.push(Double {
                file: file.clone(),
                of: method.0.1,
                method: name.clone(),
            });
        }
    }
    doubles
}

/// Adds the types of the fields of these types, and of their fields.
fn add_fields(found: &Crate, types: &mut BTreeSet<Type>) {
    let mut open: Vec<Type> = types.iter().cloned().collect();
    while let Some(next) = open.pop() {
        for path in found.types.get(&next).into_iter().flatten() {
            if let Some(field) = type_of(found, path)
                && found.types.contains_key(&field)
                && types.insert(field.clone())
            {
                open.push(field);
            }
        }
    }
}

fn type_of(found: &Crate, path: &[String]) -> Option<Type> {
    let (module, name) = resolve(found, path, ALIASES_MAX)?;
    Some((module, name?))
}

/// Returns the module that a path leads to, and the item in it. `None` if it leads out of the crate.
fn resolve(found: &Crate, path: &[String], aliases: usize) -> Option<(Segments, Option<String>)> {
    let mut module = Segments::new();
    for (at, segment) in path.iter().enumerate() {
        let alias = |name: &String| found.aliases.get(&(module.clone(), name.clone()));
        if segment == MAYBE_OUTSIDE {
            let next = path.get(at + 1)?;
            let inner: Segments = module.iter().chain([next]).cloned().collect();
            let is_own = found.types.contains_key(&(module.clone(), next.clone()));
            if !found.modules.contains_key(&inner) && alias(next).is_none() && !is_own {
                let globs = aliases.checked_sub(1)?;
                return imported_by_glob(found, &module, next, globs).map(|of| (of.0, Some(of.1)));
            }
            continue;
        }
        let inner: Segments = module.iter().chain([segment]).cloned().collect();
        if found.modules.contains_key(&inner) {
            module = inner;
            continue;
        }
        return match alias(segment) {
            Some(alias) => {
                let path: Segments = alias.iter().chain(&path[at + 1..]).cloned().collect();
                resolve(found, &path, aliases.checked_sub(1)?)
            }
            None if found.types.contains_key(&(module.clone(), segment.clone())) => {
                Some((module, Some(segment.clone())))
            }
            None => {
                let globs = aliases.checked_sub(1)?;
                let of = imported_by_glob(found, &module, segment, globs);
                let (module, item) = of.unwrap_or((module, segment.clone()));
                Some((module, Some(item)))
            }
        };
    }
    Some((module, None))
}

/// Returns the type with this name in a module of which another one imports all names.
fn imported_by_glob(found: &Crate, module: &[String], name: &str, aliases: usize) -> Option<Type> {
    let globs = found.globs.get(module)?;
    globs.iter().find_map(|glob| {
        let path: Segments = glob.iter().cloned().chain([name.to_owned()]).collect();
        let of = resolve(found, &path, aliases)?;
        let of = (of.0, of.1?);
        found.types.contains_key(&of).then_some(of)
    })
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
        let found = Crate::read("src/lib.rs", &read);
        let graph = Edges::of(&found).level(&[]);
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
            #[cfg(test)]\nimpl X { fn f() { crate::b::f() } }\n\
            #[cfg(test)]\n#[derive(Debug)]\npub(crate) struct S<A, B>(crate::b::A, B);\n\
            struct T {\n    #[cfg(test)]\n    field: Vec<crate::b::B>,\n    kept: crate::c::C,\n}\n\
            #[cfg(any(test, feature = \"testing\"))]\nuse crate::d::D;\n\
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
    fn visibilities_are_no_imports() {
        let a = "pub(in crate::b) struct X;\npub(super) struct Y;\n";
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
