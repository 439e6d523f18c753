//! Choice of the current and update revision, and the writes for it.

use serde_json::{Value, json};
use statefulset_controller_util::testing::Call;
use statefulset_controller_util::testing::builders::{self, Builder};
use statefulset_history::fake::FakeHistory;
use statefulset_history::sort_controller_revisions;

use super::*;

fn web(image: &str) -> Builder<StatefulSet> {
    builders::set("web").image(image)
}

/// Data of a set with this image.
fn data(image: &str) -> String {
    let set = web(image).build();
    RevisionData::new(&set.spec.template)
        .unwrap()
        .recorded()
        .to_string()
}

struct StoredRevisions {
    history: FakeHistory,
}

fn stored() -> StoredRevisions {
    StoredRevisions {
        history: FakeHistory::default(),
    }
}

impl StoredRevisions {
    /// Stores a revision with a unique resource version.
    fn load(&self, name: &str, number: i64, data: &str) {
        let set = web("1").build();
        let version = format!("{number}");
        let revision = builders::revision(&set, name, number, data);
        let text = revision.with("metadata.resourceVersion", version).text();
        self.history
            .revisions
            .put(serde_json::from_str(&text).unwrap());
    }

    async fn find(&self, set: &Builder<StatefulSet>) -> CurrentAndUpdate {
        self.find_with(set, true).await.unwrap()
    }

    async fn find_with(
        &self,
        set: &Builder<StatefulSet>,
        semantic: bool,
    ) -> Result<CurrentAndUpdate, Error> {
        let mut sorted = self.history.revisions.cache().list();
        sort_controller_revisions(&mut sorted);
        let set = set.build();
        let gates = FeatureGates::default().stateful_set_semantic_revision_comparison(semantic);
        get_stateful_set_revisions(&self.history, gates, &set, &sorted).await
    }

    /// Number of creations and renumberings so far.
    fn writes(&self) -> (usize, usize) {
        let history = &self.history;
        (
            history.tracker.requests(Call::CreateRevision),
            history.tracker.requests(Call::UpdateRevision),
        )
    }
}

/// Data recorded before a field got its default: other bytes, semantically equal.
fn older(image: &str) -> String {
    let mut data: Value = serde_json::from_str(&data(image)).unwrap();
    data["spec"]["template"]["metadata"]["creationTimestamp"] = Value::Null;
    data.to_string()
}

#[tokio::test]
async fn newest_revision_with_equal_bytes_is_reused() {
    let stored = stored();
    stored.load("web-a", 1, &data("1"));
    stored.load("web-b", 2, &data("2"));
    let found = stored.find(&web("2")).await;
    assert_eq!((&*found.update.name, found.update.revision), ("web-b", 2));
    assert_eq!(stored.writes(), (0, 0));
}

#[tokio::test]
async fn older_revision_with_equal_bytes_is_renumbered() {
    let stored = stored();
    stored.load("web-a", 1, &data("1"));
    stored.load("web-a2", 2, &data("1"));
    stored.load("web-b", 3, &data("2"));
    let found = stored.find(&web("1")).await;
    assert_eq!((&*found.update.name, found.update.revision), ("web-a2", 4));
    assert_eq!(
        stored.writes(),
        (0, 1),
        "the newest of several is renumbered"
    );
}

#[tokio::test]
async fn older_equal_bytes_win_over_newest_semantic_match() {
    let stored = stored();
    stored.load("web-a", 1, &data("1"));
    stored.load("web-b", 2, &older("1"));
    let found = stored.find(&web("1")).await;
    assert_eq!((&*found.update.name, found.update.revision), ("web-a", 3));
}

#[tokio::test]
async fn gate_reuses_newest_semantically_equal_revision() {
    let stored = stored();
    stored.load("web-a", 1, &older("1"));
    let found = stored.find(&web("1")).await;
    assert_eq!((&*found.update.name, stored.writes()), ("web-a", (0, 0)));

    let found = stored.find_with(&web("1"), false).await.unwrap();
    assert_eq!((found.update.revision, stored.writes()), (2, (1, 0)));
}

#[tokio::test]
async fn older_semantic_matches_are_ignored() {
    let stored = stored();
    stored.load("web-a", 1, &older("1"));
    stored.load("web-b", 2, &data("2"));
    let found = stored.find(&web("1")).await;
    assert_eq!((found.update.revision, stored.writes()), (3, (1, 0)));
}

#[tokio::test]
async fn current_revision_is_recorded_one_or_update() {
    let stored = stored();
    stored.load("web-a", 1, &data("1"));
    stored.load("web-b", 2, &data("2"));
    for (recorded, expected) in [
        ("web-a", "web-a"),
        ("web-b", "web-b"),
        ("web-z", "web-b"),
        ("", "web-b"),
    ] {
        let set = web("2").with("status.currentRevision", recorded);
        let found = stored.find(&set).await;
        assert_eq!(&*found.current.name, expected, "{recorded}");
    }
}

#[tokio::test]
async fn renumbered_current_revision_keeps_its_old_number() {
    let stored = stored();
    stored.load("web-a", 1, &data("1"));
    stored.load("web-b", 2, &data("2"));
    let found = stored
        .find(&web("1").with("status.currentRevision", "web-a"))
        .await;
    assert_eq!((found.current.revision, found.update.revision), (1, 3));
}

#[tokio::test]
async fn collision_count_continues_from_the_status() {
    let stored = stored();
    let set = web("1").with("status.collisionCount", 5);
    let template = RevisionData::new(&set.build().spec.template).unwrap();
    let revision = NewRevision::new(&set.build(), &template, 1, 5);
    stored.load(&revision.name, 1, &data("2"));
    let found = stored.find(&set).await;
    assert_eq!(found.collision_count, 6);
    assert_eq!(*found.update.name, *revision.name_for(6));
}

#[tokio::test]
async fn failed_revision_writes_are_returned() {
    let failure = || statefulset_client::error::Error::api(500, "InternalError", "boom");
    let stored = stored();
    stored
        .history
        .tracker
        .fail_after(Call::CreateRevision, 0, failure);
    let error = stored.find_with(&web("1"), false).await.err().unwrap();
    assert_eq!(error.to_string(), "boom");

    stored.load("web-a", 1, &data("1"));
    stored.load("web-b", 2, &data("2"));
    stored
        .history
        .tracker
        .fail_after(Call::UpdateRevision, 0, failure);
    let error = stored.find_with(&web("1"), false).await.err().unwrap();
    assert_eq!(error.to_string(), "boom");
}

/// Builds a set whose template has an unknown field.
fn future(value: Value) -> Builder<StatefulSet> {
    web("1").with("spec.template.spec.future", value)
}

/// Data of that set.
fn future_data(value: Value) -> String {
    let set = future(value).build();
    RevisionData::new(&set.spec.template)
        .unwrap()
        .recorded()
        .to_string()
}

#[tokio::test]
async fn unknown_member_on_one_side_writes_nothing() {
    for (recorded, set) in [
        (data("1"), future(json!(1))),
        // The same with bytes that also differ in form.
        (older("1"), future(json!(1))),
        (future_data(json!(1)), web("1")),
        (future_data(json!(null)), future(json!(1))),
    ] {
        for semantic in [true, false] {
            let stored = stored();
            stored.load("web-a", 1, &recorded);
            if !semantic && recorded == older("1") {
                continue;
            }
            let found = stored.find_with(&set, semantic).await.unwrap();
            assert_eq!((&*found.update.name, stored.writes()), ("web-a", (0, 0)));
        }
    }
}

#[tokio::test]
async fn changed_unknown_member_creates_a_revision() {
    let stored = stored();
    let first = stored.find(&future(json!(1))).await.update;
    assert!(
        first.data.to_str().contains(r#""future":1"#),
        "the unknown member is recorded"
    );
    for same in [future(json!(1)), web("1"), future(json!(null))] {
        let again = stored.find(&same).await.update;
        assert_eq!((&again.name, again.revision), (&first.name, 1));
    }
    let changed = stored.find(&future(json!(2))).await.update;
    assert_eq!(changed.revision, 2);
    let gone = stored.find(&web("1")).await.update;
    assert_eq!(gone.name, changed.name);
    assert_eq!(stored.writes(), (2, 0));
}

#[tokio::test]
async fn equal_bytes_win_among_matching_revisions() {
    let load = |revisions: &[(&str, String)]| {
        let stored = stored();
        for (number, (name, data)) in (1..).zip(revisions) {
            stored.load(name, number, data);
        }
        stored
    };
    let (a, b) = (future_data(json!(1)), future_data(json!(2)));

    // The user changed the value from 1 to 2 and back.
    let stored = load(&[("web-a", a.clone()), ("web-b", b.clone())]);
    let found = stored.find(&future(json!(1))).await.update;
    assert_eq!((&*found.name, found.revision), ("web-a", 3));

    // Both equal a template without the field: the latest stays.
    let stored = load(&[("web-a", a.clone()), ("web-b", b.clone())]);
    let found = stored.find(&web("1")).await;
    assert_eq!(
        (&*found.update.name, stored.writes()),
        ("web-b", (0, 0)),
        "the latest revision stays"
    );

    // The newest of the older revisions is renumbered.
    let stored = load(&[("web-a", a), ("web-b", b), ("web-c", data("2"))]);
    let found = stored.find(&web("1")).await.update;
    assert_eq!((&*found.name, found.revision), ("web-b", 4));
}

#[tokio::test]
async fn rollback_reuses_revision_without_unknown_member() {
    let stored = stored();
    stored.load("web-a", 1, &data("1"));
    stored.load("web-b", 2, &data("2"));
    let found = stored.find(&future(json!(1))).await.update;
    assert_eq!((&*found.name, found.revision), ("web-a", 3));
    assert_eq!(stored.writes(), (0, 1));
}
