//! Requests of a history, and its handling of conflicts.

use std::sync::atomic::{AtomicUsize, Ordering};

use statefulset_client::backoff::NoJitter;
use statefulset_client::fake::{Action, CallError, CallFault, FakeClientset, Verb};
use statefulset_client::resource::CONTROLLER_REVISIONS;
use statefulset_client::rest::PatchType;
use statefulset_controller_util::consistency::ConsistencyStore;
use statefulset_controller_util::testing::WriteLog;
use statefulset_controller_util::testing::builders;

use super::*;
use crate::data::RevisionData;

mod agreement;
mod order;

/// Bytes that no encoder writes.
const ODD: &str = r#"{ "spec" : {"a":1.0, "b":"\u003c<\/", "a2":1e3},"template":null }"#;

struct World {
    api: FakeClientset,
    log: Arc<WriteLog>,
    history: RealHistory,
    set: StatefulSet,
}

fn world() -> World {
    let api = FakeClientset::new();
    let log = Arc::new(WriteLog::default());
    let consistency: Arc<dyn ConsistencyStore> = Arc::<WriteLog>::clone(&log);
    let client = TrackedClient::new(api.rest_client(), consistency);
    let cache = Arc::new(Indexer::new());
    let history = RealHistory::new(client, cache, Arc::new(NoJitter));
    World {
        api,
        log,
        history,
        set: builders::set("web").image("a&b").build(),
    }
}

impl World {
    fn new_revision(&self) -> NewRevision {
        NewRevision::new(
            &self.set,
            &RevisionData::new(&self.set.spec.template).unwrap(),
            2,
            0,
        )
    }

    fn requests(&self) -> Vec<String> {
        let actions = self.api.actions();
        let line = |action: &Action| {
            assert_eq!(action.resource, "controllerrevisions");
            format!("{} {}", action.verb, action.name)
        };
        actions.iter().map(line).collect()
    }

    /// Loads a stored revision with odd bytes and an unknown field.
    fn load_odd(&self) -> ControllerRevision {
        let revision = builders::revision(&self.set, "web-1", 1, ODD).with("future", 7);
        self.api.load(&CONTROLLER_REVISIONS, revision.text());
        revision.build()
    }

    async fn create(&self, revision: &NewRevision) -> Result<Arc<ControllerRevision>, Error> {
        let (history, set) = (&self.history, &self.set);
        history
            .create_controller_revision(set, revision, &mut 0)
            .await
    }

    async fn renumber(&self, revision: &ControllerRevision) -> Result<(), Error> {
        let history = &self.history;
        history
            .update_controller_revision(&self.set, revision, 9)
            .await
            .map(|renumbered| assert_eq!(renumbered.revision, 9))
    }
}

#[tokio::test]
async fn posted_data_is_stored_byte_for_byte() {
    let world = world();
    let revision = world.new_revision();
    let created = world.create(&revision).await.unwrap();
    assert!(revision.data.contains(r"a\u0026b"));
    assert_eq!(created.data.to_str(), *revision.data);
    let body = &world.api.actions()[0].body;
    assert_eq!(*body, revision.body(&revision.name));
    assert_eq!(world.requests(), [format!("create {}", revision.name)]);
}

#[tokio::test]
async fn next_sync_waits_for_writes() {
    let world = world();
    let (history, set) = (&world.history, &world.set);
    world.api.react(Verb::Create, "controllerrevisions", |_| {
        let stored = r#"{"metadata":{"name":"web-x","resourceVersion":"77"}}"#;
        Some(Ok(stored.to_owned()))
    });
    let revision = world.new_revision();
    world.create(&revision).await.unwrap();
    let log = &world.log;
    assert_eq!(log.take(), ["ns/web web-uid controllerrevisions.apps 77"]);

    let odd = world.load_odd();
    world.renumber(&odd).await.unwrap();
    assert_eq!(log.take(), ["ns/web web-uid controllerrevisions.apps 2"]);

    let orphan = builders::revision(set, "web-2", 1, ODD).orphan();
    world.api.load(&CONTROLLER_REVISIONS, orphan.text());
    let orphan = orphan.build();
    let adopted = history.adopt_controller_revision(set, &orphan);
    adopted.await.unwrap();
    assert_eq!(log.take(), ["ns/web web-uid controllerrevisions.apps 2"]);

    history.delete_controller_revision(&orphan).await.unwrap();
    assert!(log.take().is_empty());
}

#[tokio::test]
async fn existing_revision_with_same_data_is_only_read() {
    let world = world();
    let revision = world.new_revision();
    let there = builders::revision(&world.set, &revision.name, 1, &revision.data);
    world.api.load(&CONTROLLER_REVISIONS, there.text());
    let created = world.create(&revision).await.unwrap();
    assert_eq!(*created, there.build());
    let name = &revision.name;
    assert_eq!(
        world.requests(),
        [format!("create {name}"), format!("get {name}")]
    );
    // The cache may not have it yet, so the next sync waits for it.
    let version = there.build().resource_version;
    let awaited = format!("ns/web web-uid controllerrevisions.apps {version}");
    assert_eq!(world.log.take(), [awaited]);
}

#[tokio::test]
async fn unreadable_revision_of_a_taken_name_ends_the_search() {
    let world = world();
    let taken = CallError::AlreadyExists;
    let rule = CallFault::new(Verb::Create, "controllerrevisions", 1, taken);
    world.api.fail(rule);
    let revision = world.new_revision();
    let created = world.create(&revision).await;
    assert!(created.unwrap_err().is_not_found());
    assert_eq!(world.requests().len(), 2);
}

#[tokio::test]
async fn other_create_errors_are_returned() {
    let world = world();
    let rule = CallFault::new(Verb::Create, "controllerrevisions", 1, CallError::Conflict);
    world.api.fail(rule);
    let revision = world.new_revision();
    let created = world.create(&revision).await;
    assert!(created.unwrap_err().is_conflict());
    assert_eq!(world.requests().len(), 1);
}

#[tokio::test]
async fn renumbering_keeps_every_other_byte() {
    let world = world();
    let odd = world.load_odd();
    let before = world.api.raw_objects(&CONTROLLER_REVISIONS);
    world.renumber(&odd).await.unwrap();
    let after = world.api.raw_objects(&CONTROLLER_REVISIONS);
    assert!(before[0].contains(ODD) && before[0].contains(r#""future":7"#));
    assert_eq!(
        after[0],
        before[0].replace(r#""revision":1"#, r#""revision":9"#)
    );
    assert_eq!(world.requests(), ["get web-1", "update web-1"]);
}

/// A stored revision whose data holds an unpaired surrogate, which no Rust string can.
fn half_character(set: &StatefulSet) -> String {
    let stored = builders::revision(set, "web-1", 1, r#"{"a":"odd"}"#).text();
    stored.replace("odd", r"\ud800")
}

#[tokio::test]
async fn renumbering_keeps_unpaired_surrogates() {
    let world = world();
    let stored = half_character(&world.set);
    let cached = decode(&Document::from(stored.replace("d800", "fffd"))).unwrap();
    world.load_odd();
    let live = stored.clone();
    let read = move |_: &Action| Some(Ok(live.clone()));
    world.api.react(Verb::Get, "controllerrevisions", read);
    let answer = stored.clone();
    let write = move |_: &Action| Some(Ok(answer.clone()));
    world.api.react(Verb::Update, "controllerrevisions", write);
    world.renumber(&cached).await.unwrap();
    let number = (r#""revision":1"#, r#""revision":9"#);
    assert_eq!(
        world.api.actions()[1].body,
        stored.replace(number.0, number.1)
    );
}

#[tokio::test]
async fn existing_revision_with_other_bytes_is_a_collision() {
    let world = world();
    let stored = half_character(&world.set);
    let read = move |_: &Action| Some(Ok(stored.clone()));
    world.api.react(Verb::Get, "controllerrevisions", read);
    let taken = CallError::AlreadyExists;
    let rule = CallFault::new(Verb::Create, "controllerrevisions", 1, taken);
    world.api.fail(rule);
    let revision = NewRevision {
        data: r#"{"a":"\ufffd"}"#.into(),
        ..world.new_revision()
    };
    let (history, set) = (&world.history, &world.set);
    let mut collisions = 0;
    let created = history.create_controller_revision(set, &revision, &mut collisions);
    created.await.unwrap();
    assert_eq!(collisions, 1);
}

#[tokio::test]
async fn update_with_the_same_number_writes_nothing() {
    let world = world();
    let odd = world.load_odd();
    let there = ControllerRevision { revision: 9, ..odd };
    world.renumber(&there).await.unwrap();
    assert!(world.requests().is_empty());

    let live = builders::revision(&world.set, "web-1", 9, ODD);
    world.api.load(&CONTROLLER_REVISIONS, live.text());
    let cached = ControllerRevision {
        revision: 1,
        ..there
    };
    world.renumber(&cached).await.unwrap();
    assert_eq!(world.requests(), ["get web-1"]);
}

#[tokio::test(start_paused = true)]
async fn conflict_is_tried_four_times_on_fresh_copies() {
    for (conflicts, succeeds) in [(3, true), (4, false)] {
        let world = world();
        let odd = world.load_odd();
        let conflict = CallError::Conflict;
        let rule = CallFault::new(Verb::Update, "controllerrevisions", conflicts, conflict);
        world.api.fail(rule);
        // Each read sees another version, as after another client's write.
        let (reads, stored) = (
            AtomicUsize::new(10),
            world.api.raw_objects(&CONTROLLER_REVISIONS),
        );
        world.api.react(Verb::Get, "controllerrevisions", move |_| {
            let version = reads.fetch_add(1, Ordering::Relaxed);
            let version = format!(r#""resourceVersion":"{version}""#);
            Some(Ok(stored[0].replace(r#""resourceVersion":"2""#, &version)))
        });
        let start = tokio::time::Instant::now();
        let result = world.renumber(&odd).await;
        assert_eq!(result.is_ok(), succeeds);
        assert!(succeeds || result.unwrap_err().is_conflict());
        assert_eq!(start.elapsed().as_millis(), 10 + 50 + 250);
        let puts: Vec<String> = world
            .api
            .actions()
            .iter()
            .filter(|action| action.verb == Verb::Update)
            .map(|action| action.json()["metadata"]["resourceVersion"].to_string())
            .collect();
        assert_eq!(puts, [r#""10""#, r#""11""#, r#""12""#, r#""13""#]);
    }
}

#[tokio::test(start_paused = true)]
async fn replaced_revision_is_never_renumbered() {
    let world = world();
    let odd = world.load_odd();
    for live in [
        builders::revision(&world.set, "web-1", 1, ODD).uid("new"),
        builders::revision(&world.set, "web-1", 1, "{}"),
    ] {
        world.api.clear_actions();
        world.api.load(&CONTROLLER_REVISIONS, live.text());
        let error = world.renumber(&odd).await.unwrap_err();
        assert!(error.is_conflict(), "{error}");
        assert_eq!(world.requests(), ["get web-1"; 4]);
    }
}

#[tokio::test]
async fn other_update_errors_are_returned() {
    let world = world();
    let odd = world.load_odd();
    let rule = CallFault::new(Verb::Update, "controllerrevisions", 1, CallError::Invalid);
    world.api.fail(rule);
    let error = world.renumber(&odd).await.unwrap_err();
    assert_eq!(error.to_string(), r#"X "web-1" is invalid"#);
    assert_eq!(world.requests(), ["get web-1", "update web-1"]);
}

#[tokio::test]
async fn adoption_sends_gos_patch() {
    let world = world();
    let orphan = builders::revision(&world.set, "web-1", 1, ODD).orphan();
    world.api.load(&CONTROLLER_REVISIONS, orphan.text());
    let (history, orphan) = (&world.history, orphan.build());
    let adopted = history.adopt_controller_revision(&world.set, &orphan);
    adopted.await.unwrap();
    let actions = world.api.actions();
    assert_eq!(actions[0].patch_type, Some(PatchType::Strategic));
    assert_eq!(
        actions[0].body,
        r#"{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"web","uid":"web-uid","controller":true,"blockOwnerDeletion":true}],"uid":"web-1-uid"}}"#
    );
}

#[tokio::test]
async fn delete_sends_uid_and_version() {
    let world = world();
    let odd = world.load_odd();
    world
        .history
        .delete_controller_revision(&odd)
        .await
        .unwrap();
    assert_eq!(
        world.api.actions()[0].json(),
        json!({
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": {"uid": "web-1-uid", "resourceVersion": odd.resource_version},
        })
    );
    assert!(!odd.resource_version.is_empty());
}

#[tokio::test]
async fn adopt_returns_the_new_version() {
    let world = world();
    let text = orphan_text(&world.set);
    world.api.load(&CONTROLLER_REVISIONS, text.clone());
    let (history, orphan) = (&world.history, ControllerRevision::decode(&text).unwrap());
    let patched = text.replace(r#""40""#, r#""41""#);
    world
        .api
        .react(Verb::Patch, "controllerrevisions", move |_| {
            Some(Ok(patched.clone()))
        });
    let adopted = history.adopt_controller_revision(&world.set, &orphan);
    let adopted = adopted.await.unwrap();
    world.api.clear_actions();
    history.delete_controller_revision(&adopted).await.unwrap();
    let options = world.api.actions()[0].json();
    assert_eq!(options["preconditions"]["resourceVersion"], "41");
}

fn orphan_text(set: &StatefulSet) -> String {
    let orphan = builders::revision(set, "web-1", 1, ODD).orphan();
    orphan.with("metadata.resourceVersion", "40").text()
}

#[tokio::test]
async fn failed_delete_is_returned_without_retry() {
    let (conflict, not_found) = (CallError::Conflict, CallError::NotFound);
    for failure in [conflict, not_found, CallError::InternalError] {
        let world = world();
        let odd = world.load_odd();
        let rule = CallFault::new(Verb::Delete, "controllerrevisions", 1, failure);
        world.api.fail(rule);
        let result = world.history.delete_controller_revision(&odd).await;
        let error = result.unwrap_err();
        assert_eq!(error.is_conflict(), failure == conflict);
        assert_eq!(error.is_not_found(), failure == not_found);
        assert_eq!(world.requests(), ["delete web-1"]);
    }
}

#[tokio::test]
async fn release_ignores_invalid_but_not_conflict() {
    for (failure, released) in [
        (CallError::Invalid, true),
        (CallError::NotFound, true),
        (CallError::Conflict, false),
        (CallError::Forbidden, false),
    ] {
        let world = world();
        let owned = world.load_odd();
        let rule = CallFault::new(Verb::Patch, "controllerrevisions", 1, failure);
        world.api.fail(rule);
        let result = world
            .history
            .release_controller_revision(&world.set, &owned)
            .await;
        assert_eq!(result.is_ok(), released, "{failure:?}");
        let patch = &world.api.actions()[0].body;
        assert_eq!(
            patch,
            r#"{"metadata":{"uid":"web-1-uid","ownerReferences":[{"$patch":"delete","uid":"web-uid"}]}}"#
        );
    }
}
