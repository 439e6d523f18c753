//! Tests of the cache against a small object type.

use std::collections::BTreeMap;

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use super::*;
use crate::fake::TestObject;

fn object(namespace: &str, name: &str, owner: &str, version: &str) -> TestObject {
    TestObject::new(namespace, name)
        .with_owner(owner)
        .with_version(version)
}

fn names(objects: &[Arc<TestObject>]) -> Vec<String> {
    objects
        .iter()
        .map(|object| format!("{}/{}", object.namespace(), object.name()))
        .collect()
}

#[test]
fn objects_are_found_by_name_and_listed_in_order() {
    let indexer = Indexer::new();
    for (namespace, name) in [("b", "1"), ("a", "2"), ("a", "10"), ("a-b", "0")] {
        indexer.add(object(namespace, name, "", "1"));
    }
    assert_eq!(names(&indexer.list()), ["a/10", "a/2", "a-b/0", "b/1"]);
    assert_eq!(indexer.get("a", "2").unwrap().name(), "2");
    assert!(indexer.get("a", "1").is_none());
    assert_eq!(indexer.len(), 4);
}

#[test]
fn an_update_moves_an_object_between_indexes() {
    let indexer = Indexer::new();
    let owned = IndexKey::controller("a", "StatefulSet", "web", "u1");
    let orphans = IndexKey::orphans("a");
    indexer.add(object("a", "web-1", "u1", "1"));
    indexer.add(object("a", "web-0", "u1", "2"));
    assert_eq!(names(&indexer.by_index(&owned)), ["a/web-0", "a/web-1"]);

    let old = indexer.update(object("a", "web-0", "", "3")).unwrap();
    assert_eq!(old.resource_version(), "2");
    assert_eq!(names(&indexer.by_index(&owned)), ["a/web-1"]);
    assert_eq!(names(&indexer.by_index(&orphans)), ["a/web-0"]);

    indexer.delete(&object("a", "web-0", "", "4"));
    assert!(indexer.by_index(&orphans).is_empty());
    assert!(indexer.get("a", "web-0").is_none());
}

#[test]
fn an_update_replaces_the_object_in_its_index() {
    let indexer = Indexer::new();
    indexer.add(object("a", "web-0", "u1", "1"));
    indexer.add(object("a", "web-0", "u1", "2"));
    let bucket = indexer.by_index(&IndexKey::controller("a", "StatefulSet", "web", "u1"));
    assert_eq!(bucket.len(), 1);
    assert_eq!(bucket[0].resource_version(), "2");
}

#[test]
fn last_change_overwrites_version() {
    let indexer = Indexer::<TestObject>::new();
    assert_eq!(&*indexer.last_sync_resource_version(), "");
    indexer.add(object("a", "x", "", "20"));
    assert_eq!(&*indexer.last_sync_resource_version(), "20");
    indexer.bookmark("30");
    assert_eq!(&*indexer.last_sync_resource_version(), "30");
    indexer.delete(&object("a", "x", "", "31"));
    assert_eq!(&*indexer.last_sync_resource_version(), "31");
    indexer.replace(Vec::new(), "10");
    assert_eq!(&*indexer.last_sync_resource_version(), "10");
}

#[test]
fn replace_reports_added_and_removed_objects() {
    let indexer = Indexer::new();
    indexer.add(object("a", "stays", "u1", "1"));
    indexer.add(object("a", "goes", "u1", "2"));
    let fresh = vec![
        Arc::new(object("a", "stays", "u1", "5")),
        Arc::new(object("a", "comes", "u1", "6")),
    ];
    let replaced = indexer.replace(fresh, "7");
    let present: Vec<_> = replaced
        .present
        .iter()
        .map(|(old, new)| {
            (
                new.name(),
                old.as_ref().map(|old| old.resource_version().to_owned()),
            )
        })
        .collect();
    assert_eq!(present, [("comes", None), ("stays", Some("1".to_owned()))]);
    assert_eq!(names(&replaced.gone), ["a/goes"]);
    let owned = IndexKey::controller("a", "StatefulSet", "web", "u1");
    assert_eq!(names(&indexer.by_index(&owned)), ["a/comes", "a/stays"]);
}

#[test]
fn remove_keeps_version() {
    let indexer = Indexer::new();
    indexer.add(object("a", "x", "", "5"));
    assert!(indexer.remove("a", "x").is_some());
    assert!(indexer.remove("a", "x").is_none());
    assert_eq!(&*indexer.last_sync_resource_version(), "5");
}

/// After random changes, every read agrees with a linear search.
#[test]
fn indexes_agree_with_linear_search() {
    for seed in 0..50 {
        let mut rng = StdRng::seed_from_u64(seed);
        let indexer = Indexer::new();
        let mut model = BTreeMap::new();
        for version in 0..200 {
            let namespace = ["a", "b"][rng.random_range(0..2)];
            let name = ["0", "1", "2", "10"][rng.random_range(0..4)];
            let owner = ["", "u1", "u2"][rng.random_range(0..3)];
            let fresh = object(namespace, name, owner, &version.to_string());
            match rng.random_range(0..10) {
                0 => {
                    let kept: Vec<_> = model.values().filter(|_| rng.random()).cloned().collect();
                    model = kept
                        .iter()
                        .map(|object| (key_of(object), object.clone()))
                        .collect();
                    indexer.replace(kept.into_iter().map(Arc::new).collect(), "9");
                }
                1..4 => {
                    let removed = model.remove(&key_of(&fresh));
                    assert_eq!(indexer.delete(&fresh).as_deref(), removed.as_ref());
                }
                _ => {
                    let replaced = model.insert(key_of(&fresh), fresh.clone());
                    assert_eq!(indexer.add(fresh).as_deref(), replaced.as_ref());
                }
            }
            let all = indexer.list();
            assert!(
                all.iter().map(|object| &**object).eq(model.values()),
                "seed {seed}"
            );
            for key in [
                IndexKey::orphans("a"),
                IndexKey::controller("a", "StatefulSet", "web", "u1"),
                IndexKey::controller("b", "StatefulSet", "web", "u2"),
            ] {
                let bucket = indexer.by_index(&key);
                let mut found: Vec<_> = model.values().collect();
                found.retain(|object| {
                    let mut keys = Vec::new();
                    object.index_values(&mut keys);
                    keys.contains(&key)
                });
                // "10" comes after "2", as in the order of ordinals.
                found.sort_by_key(|object| object.name().len());
                assert!(
                    bucket.iter().map(|object| &**object).eq(found),
                    "seed {seed}, {key}"
                );
            }
        }
    }
}

fn key_of(object: &TestObject) -> (String, String) {
    (object.namespace().to_owned(), object.name().to_owned())
}
