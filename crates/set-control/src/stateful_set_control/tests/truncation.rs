//! Revisions that a sync deletes.

use super::*;

fn names(limit: i32) -> Vec<String> {
    let revision = |name: &str| {
        Arc::new(ControllerRevision {
            name: name.into(),
            ..ControllerRevision::default()
        })
    };
    let revisions: Vec<_> = ["a", "b", "c", "d", "e"].map(revision).into();
    let labels = [("controller-revision-hash", "b")].into_iter().collect();
    let pods = [Arc::new(Pod {
        labels,
        ..Pod::default()
    })];
    revisions_to_delete(&revisions, &pods, &["e"], limit)
        .iter()
        .map(|revision| revision.name.to_string())
        .collect()
}

#[test]
fn oldest_unused_revisions_past_the_limit_are_deleted() {
    assert_eq!(names(1), ["a", "c"]);
    assert_eq!(names(0), ["a", "c", "d"]);
    assert!(names(3).is_empty());
}

#[test]
fn negative_limit_keeps_all_revisions() {
    assert!(names(-1).is_empty());
}
