//! Requests of a history, and its handling of conflicts.

use std::sync::atomic::{AtomicUsize, Ordering};

use statefulset_client::backoff::NoJitter;
use statefulset_client::fake::{Action, FakeClientset, FaultError, FaultRule, Verb};
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

struct Setup {
    api: FakeClientset,
    log: Arc<WriteLog>,
    history: RealHistory,
    set: StatefulSet,
}

fn setup() -> Setup {
    let api = FakeClientset::new();
    let log = Arc::new(WriteLog::default());
    let consistency: Arc<dyn ConsistencyStore> = Arc::<WriteLog>::clone(&log);
    let client = TrackedClient::new(api.rest_client(), consistency);
    let cache = Arc::new(Indexer::new());
    let history = RealHistory::new(client, cache, Arc::new(NoJitter));
    Setup {
        api,
        log,
        history,
        set: builders::set("web").image("a&b").build(),
    }
}

impl Setup {
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

    /// Loads a stored revision with odd bytes and an unknown member.
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
    let setup = setup();
    let revision = setup.new_revision();
    let created = setup.create(&revision).await.unwrap();
    assert!(revision.data.contains(r"a\u0026b"));
    assert_eq!(created.data.to_str(), *revision.data);
    let body = &setup.api.actions()[0].body;
    assert_eq!(*body, revision.body(&revision.name));
    assert_eq!(setup.requests(), [format!("create {}", revision.name)]);
}

#[tokio::test]
async fn next_sync_waits_for_writes() {
    let setup = setup();
    let (history, set) = (&setup.history, &setup.set);
    setup.api.react(Verb::Create, "controllerrevisions", |_| {
        let stored = r#"{"metadata":{"name":"web-x","resourceVersion":"77"}}"#;
        Some(Ok(stored.to_owned()))
    });
    let revision = setup.new_revision();
    setup.create(&revision).await.unwrap();
    let log = &setup.log;
    assert_eq!(log.take(), ["ns/web web-uid controllerrevisions.apps 77"]);

    let odd = setup.load_odd();
    setup.renumber(&odd).await.unwrap();
    assert_eq!(log.take(), ["ns/web web-uid controllerrevisions.apps 2"]);

    let orphan = builders::revision(set, "web-2", 1, ODD).orphan();
    setup.api.load(&CONTROLLER_REVISIONS, orphan.text());
    let orphan = orphan.build();
    let adopted = history.adopt_controller_revision(set, &orphan);
    adopted.await.unwrap();
    assert_eq!(log.take(), ["ns/web web-uid controllerrevisions.apps 2"]);

    history.delete_controller_revision(&orphan).await.unwrap();
    assert!(log.take().is_empty());
}

#[tokio::test]
async fn existing_revision_with_same_data_is_only_read() {
    let setup = setup();
    let revision = setup.new_revision();
    let there = builders::revision(&setup.set, &revision.name, 1, &revision.data);
    setup.api.load(&CONTROLLER_REVISIONS, there.text());
    let created = setup.create(&revision).await.unwrap();
    assert_eq!(*created, there.build());
    let name = &revision.name;
    assert_eq!(
        setup.requests(),
        [format!("create {name}"), format!("get {name}")]
    );
    // The cache may not have it yet, so the next sync waits for it.
    let version = there.build().resource_version;
    let awaited = format!("ns/web web-uid controllerrevisions.apps {version}");
    assert_eq!(setup.log.take(), [awaited]);
}

#[tokio::test]
async fn unreadable_revision_of_a_taken_name_ends_the_search() {
    let setup = setup();
    let taken = FaultError::AlreadyExists;
    let rule = FaultRule::new(Verb::Create, "controllerrevisions", 1, taken);
    setup.api.fail(rule);
    let revision = setup.new_revision();
    let created = setup.create(&revision).await;
    assert!(created.unwrap_err().is_not_found());
    assert_eq!(setup.requests().len(), 2);
}

#[tokio::test]
async fn other_create_errors_are_returned() {
    let setup = setup();
    let rule = FaultRule::new(Verb::Create, "controllerrevisions", 1, FaultError::Conflict);
    setup.api.fail(rule);
    let revision = setup.new_revision();
    let created = setup.create(&revision).await;
    assert!(created.unwrap_err().is_conflict());
    assert_eq!(setup.requests().len(), 1);
}

#[tokio::test]
async fn renumbering_keeps_every_other_byte() {
    let setup = setup();
    let odd = setup.load_odd();
    let before = setup.api.raw_objects(&CONTROLLER_REVISIONS);
    setup.renumber(&odd).await.unwrap();
    let after = setup.api.raw_objects(&CONTROLLER_REVISIONS);
    assert!(before[0].contains(ODD) && before[0].contains(r#""future":7"#));
    assert_eq!(
        after[0],
        before[0].replace(r#""revision":1"#, r#""revision":9"#)
    );
    assert_eq!(setup.requests(), ["get web-1", "update web-1"]);
}

/// A stored revision whose data holds an unpaired surrogate, which no Rust string can.
fn half_character(set: &StatefulSet) -> String {
    let stored = builders::revision(set, "web-1", 1, r#"{"a":"odd"}"#).text();
    stored.replace("odd", r"\ud800")
}

#[tokio::test]
async fn renumbering_keeps_unpaired_surrogates() {
    let setup = setup();
    let stored = half_character(&setup.set);
    let cached = decode(&Document::from(stored.replace("d800", "fffd"))).unwrap();
    setup.load_odd();
    let live = stored.clone();
    let read = move |_: &Action| Some(Ok(live.clone()));
    setup.api.react(Verb::Get, "controllerrevisions", read);
    let answer = stored.clone();
    let write = move |_: &Action| Some(Ok(answer.clone()));
    setup.api.react(Verb::Update, "controllerrevisions", write);
    setup.renumber(&cached).await.unwrap();
    let number = (r#""revision":1"#, r#""revision":9"#);
    assert_eq!(
        setup.api.actions()[1].body,
        stored.replace(number.0, number.1)
    );
}

#[tokio::test]
async fn existing_revision_with_other_bytes_is_a_collision() {
    let setup = setup();
    let stored = half_character(&setup.set);
    let read = move |_: &Action| Some(Ok(stored.clone()));
    setup.api.react(Verb::Get, "controllerrevisions", read);
    let taken = FaultError::AlreadyExists;
    let rule = FaultRule::new(Verb::Create, "controllerrevisions", 1, taken);
    setup.api.fail(rule);
    let revision = NewRevision {
        data: r#"{"a":"\ufffd"}"#.into(),
        ..setup.new_revision()
    };
    let (history, set) = (&setup.history, &setup.set);
    let mut collisions = 0;
    let created = history.create_controller_revision(set, &revision, &mut collisions);
    created.await.unwrap();
    assert_eq!(collisions, 1);
}

#[tokio::test]
async fn update_with_the_same_number_writes_nothing() {
    let setup = setup();
    let odd = setup.load_odd();
    let there = ControllerRevision { revision: 9, ..odd };
    setup.renumber(&there).await.unwrap();
    assert!(setup.requests().is_empty());

    let live = builders::revision(&setup.set, "web-1", 9, ODD);
    setup.api.load(&CONTROLLER_REVISIONS, live.text());
    let cached = ControllerRevision {
        revision: 1,
        ..there
    };
    setup.renumber(&cached).await.unwrap();
    assert_eq!(setup.requests(), ["get web-1"]);
}

#[tokio::test(start_paused = true)]
async fn conflict_is_tried_four_times_on_fresh_copies() {
    for (conflicts, succeeds) in [(3, true), (4, false)] {
        let setup = setup();
        let odd = setup.load_odd();
        let conflict = FaultError::Conflict;
        let rule = FaultRule::new(Verb::Update, "controllerrevisions", conflicts, conflict);
        setup.api.fail(rule);
        // Each read sees another version, as after another client's write.
        let (reads, stored) = (
            AtomicUsize::new(10),
            setup.api.raw_objects(&CONTROLLER_REVISIONS),
        );
        setup.api.react(Verb::Get, "controllerrevisions", move |_| {
            let version = reads.fetch_add(1, Ordering::Relaxed);
            let version = format!(r#""resourceVersion":"{version}""#);
            Some(Ok(stored[0].replace(r#""resourceVersion":"2""#, &version)))
        });
        let start = tokio::time::Instant::now();
        let result = setup.renumber(&odd).await;
        assert_eq!(result.is_ok(), succeeds);
        assert!(succeeds || result.unwrap_err().is_conflict());
        assert_eq!(start.elapsed().as_millis(), 10 + 50 + 250);
        let puts: Vec<String> = setup
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
    let setup = setup();
    let odd = setup.load_odd();
    for live in [
        builders::revision(&setup.set, "web-1", 1, ODD).uid("new"),
        builders::revision(&setup.set, "web-1", 1, "{}"),
    ] {
        setup.api.clear_actions();
        setup.api.load(&CONTROLLER_REVISIONS, live.text());
        let error = setup.renumber(&odd).await.unwrap_err();
        assert!(error.is_conflict(), "{error}");
        assert_eq!(setup.requests(), ["get web-1"; 4]);
    }
}

#[tokio::test]
async fn other_update_errors_are_returned() {
    let setup = setup();
    let odd = setup.load_odd();
    let rule = FaultRule::new(Verb::Update, "controllerrevisions", 1, FaultError::Invalid);
    setup.api.fail(rule);
    let error = setup.renumber(&odd).await.unwrap_err();
    assert_eq!(error.to_string(), r#"X "web-1" is invalid"#);
    assert_eq!(setup.requests(), ["get web-1", "update web-1"]);
}

#[tokio::test]
async fn adoption_sends_gos_patch() {
    let setup = setup();
    let orphan = builders::revision(&setup.set, "web-1", 1, ODD).orphan();
    setup.api.load(&CONTROLLER_REVISIONS, orphan.text());
    let (history, orphan) = (&setup.history, orphan.build());
    let adopted = history.adopt_controller_revision(&setup.set, &orphan);
    adopted.await.unwrap();
    let actions = setup.api.actions();
    assert_eq!(actions[0].patch_type, Some(PatchType::Strategic));
    assert_eq!(
        actions[0].body,
        r#"{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"web","uid":"web-uid","controller":true,"blockOwnerDeletion":true}],"uid":"web-1-uid"}}"#
    );
}

#[tokio::test]
async fn delete_sends_uid_and_version() {
    let setup = setup();
    let odd = setup.load_odd();
    setup
        .history
        .delete_controller_revision(&odd)
        .await
        .unwrap();
    assert_eq!(
        setup.api.actions()[0].json(),
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
    let setup = setup();
    let text = orphan_text(&setup.set);
    setup.api.load(&CONTROLLER_REVISIONS, text.clone());
    let (history, orphan) = (&setup.history, ControllerRevision::decode(&text).unwrap());
    let patched = text.replace(r#""40""#, r#""41""#);
    setup
        .api
        .react(Verb::Patch, "controllerrevisions", move |_| {
            Some(Ok(patched.clone()))
        });
    let adopted = history.adopt_controller_revision(&setup.set, &orphan);
    let adopted = adopted.await.unwrap();
    setup.api.clear_actions();
    history.delete_controller_revision(&adopted).await.unwrap();
    let options = setup.api.actions()[0].json();
    assert_eq!(options["preconditions"]["resourceVersion"], "41");
}

fn orphan_text(set: &StatefulSet) -> String {
    let orphan = builders::revision(set, "web-1", 1, ODD).orphan();
    orphan.with("metadata.resourceVersion", "40").text()
}

#[tokio::test]
async fn failed_delete_is_returned_without_retry() {
    let (conflict, not_found) = (FaultError::Conflict, FaultError::NotFound);
    for failure in [conflict, not_found, FaultError::InternalError] {
        let setup = setup();
        let odd = setup.load_odd();
        let rule = FaultRule::new(Verb::Delete, "controllerrevisions", 1, failure);
        setup.api.fail(rule);
        let result = setup.history.delete_controller_revision(&odd).await;
        let error = result.unwrap_err();
        assert_eq!(error.is_conflict(), failure == conflict);
        assert_eq!(error.is_not_found(), failure == not_found);
        assert_eq!(setup.requests(), ["delete web-1"]);
    }
}

#[tokio::test]
async fn release_ignores_invalid_but_not_conflict() {
    for (failure, released) in [
        (FaultError::Invalid, true),
        (FaultError::NotFound, true),
        (FaultError::Conflict, false),
        (FaultError::Forbidden, false),
    ] {
        let setup = setup();
        let owned = setup.load_odd();
        let rule = FaultRule::new(Verb::Patch, "controllerrevisions", 1, failure);
        setup.api.fail(rule);
        let result = setup
            .history
            .release_controller_revision(&setup.set, &owned)
            .await;
        assert_eq!(result.is_ok(), released, "{failure:?}");
        let patch = &setup.api.actions()[0].body;
        assert_eq!(
            patch,
            r#"{"metadata":{"uid":"web-1-uid","ownerReferences":[{"$patch":"delete","uid":"web-uid"}]}}"#
        );
    }
}
