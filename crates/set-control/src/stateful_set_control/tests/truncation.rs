//! Revisions that a sync deletes.

use super::*;

/// Deletes the unused ones of the revisions `a` to `e`, of which a pod has `b` and the status names
/// `e`. Returns the others.
async fn left(limit: i32) -> Vec<String> {
    let set = web().with("spec.revisionHistoryLimit", limit);
    let (world, set) = (world(&set), set.build());
    let revision = |name: &str| world.put_revision(&builders::revision(&set, name, 1, "{}"));
    let revisions = ["a", "b", "c", "d", "e"].map(revision);
    let pods = [Arc::new(builders::pod(&set, 0).revision("b").build())];
    let used = CurrentAndUpdate {
        current: Arc::clone(&revisions[4]),
        update: Arc::clone(&revisions[4]),
        collision_count: 0,
    };
    let history = &*world.control.history;
    let truncated = truncate_history(history, &set, &pods, &revisions, Some(&used));
    truncated.await.unwrap();
    world.revision_names()
}

#[tokio::test]
async fn oldest_unused_revisions_past_the_limit_are_deleted() {
    assert_eq!(left(1).await, ["b", "d", "e"]);
    assert_eq!(left(0).await, ["b", "e"]);
    assert_eq!(left(3).await.len(), 5);
}

#[tokio::test]
async fn negative_limit_keeps_all_revisions() {
    assert_eq!(left(-1).await.len(), 5);
}
