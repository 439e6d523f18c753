//! Tests of the operations on field sets.

use super::*;
use crate::managed_fields::path::display;

/// Builds a set from paths in the form `a.b.c`.
fn set(paths: &[&str]) -> Set {
    let mut set = Set::EMPTY;
    for path in paths {
        set.insert(&path_of(path));
    }
    set
}

fn path_of(text: &str) -> Path {
    text.split('.').map(PathElement::field).collect()
}

fn texts(set: &Set) -> Vec<String> {
    set.paths().iter().map(|path| display(path)).collect()
}

#[test]
fn insert_adds_no_parents_or_children() {
    let set = set(&["a.b.c", "b", "b.c"]);
    assert!(set.has(&path_of("a.b.c")));
    assert!(set.has(&path_of("b")));
    assert!(!set.has(&path_of("a.b")));
    assert!(!set.has(&path_of("a.b.c.d")));
    assert!(!set.has(&[]));
    assert!(!set.is_empty());
    assert!(Set::EMPTY.is_empty());
}

#[test]
fn paths_come_level_by_level() {
    let set = set(&["b.x", "a.y", "c", "a", "a.b"]);
    assert_eq!(texts(&set), [".a", ".c", ".a.b", ".a.y", ".b.x"]);
}

#[test]
fn union_takes_both() {
    let union = set(&["a", "a.b", "c.d"]).union(&set(&["a.c", "b", "c"]));
    assert_eq!(union, set(&["a", "a.b", "a.c", "b", "c", "c.d"]));
}

#[test]
fn intersection_takes_members_only() {
    let both = set(&["a", "a.b", "c.d", "e"]).intersection(&set(&["a.b", "c", "c.d", "f"]));
    assert_eq!(both, set(&["a.b", "c.d"]));
    assert!(set(&["a"]).intersection(&set(&["a.b"])).is_empty());
}

#[test]
fn difference_keeps_children_of_removed_fields() {
    let rest = set(&["a", "a.b", "a.c", "d"]).difference(&set(&["a", "a.b", "d.e"]));
    assert_eq!(rest, set(&["a.c", "d"]));
    assert!(set(&["a.b"]).difference(&set(&["a.b"])).is_empty());
}

#[test]
fn recursive_difference_removes_children() {
    let rest = set(&["a", "a.b", "a.c.d", "b.c"]).recursive_difference(&set(&["a", "b.d"]));
    assert_eq!(rest, set(&["b.c"]));
    let rest = set(&["a", "a.b"]).recursive_difference(&set(&["a.b"]));
    assert_eq!(rest, set(&["a"]));
}

#[test]
fn adding_an_existing_node_merges_it() {
    let mut one = set(&["b.c", "a"]);
    one.add(PathElement::field("b"), true, set(&["d"]));
    assert_eq!(one, set(&["a", "b", "b.c", "b.d"]));
    one.add(PathElement::field("z"), false, Set::EMPTY);
    assert_eq!(one.nodes().len(), 2);
}

#[test]
fn sets_are_built_from_member_paths() {
    let from = Set::from([["status"].as_slice(), ["metadata", "labels"].as_slice()]);
    assert_eq!(from, set(&["status", "metadata.labels"]));
}
