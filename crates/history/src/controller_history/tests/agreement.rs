//! Behaviour that the real history and the fake share.

use serde_json::{Value, json};
use statefulset_client::backoff::NoJitter;
use statefulset_client::cache::indexer::CachedObject as _;
use statefulset_client::fake::FakeClientset;
use statefulset_client::resource::CONTROLLER_REVISIONS;
use statefulset_controller_util::controller_revision::HASH_LABEL;
use statefulset_controller_util::testing::WriteLog;
use statefulset_controller_util::testing::builders::{self, Builder, owner_reference};
use statefulset_controller_util::tracked_client::TrackedClient;

use crate::controller_history::*;
use crate::data::RevisionData;
use crate::fake::FakeHistory;

const EMPTY: &str = r#"{"spec":{"template":{"$patch":"replace"}}}"#;

/// A history and its backing store.
enum Server {
    Real(RealHistory, FakeClientset, Arc<Indexer<ControllerRevision>>),
    Fake(FakeHistory),
}

impl Server {
    fn both() -> [Self; 2] {
        let api = FakeClientset::new();
        let cache = Arc::new(Indexer::new());
        let client = TrackedClient::new(api.rest_client(), Arc::new(WriteLog::default()));
        let real = RealHistory::new(client, Arc::clone(&cache), Arc::new(NoJitter));
        [
            Self::Real(real, api, cache),
            Self::Fake(FakeHistory::default()),
        ]
    }

    fn history(&self) -> &dyn History {
        match self {
            Self::Real(history, _, _) => history,
            Self::Fake(history) => history,
        }
    }

    async fn create(
        &self,
        set: &StatefulSet,
        revision: &NewRevision,
        mut count: i32,
    ) -> (Arc<ControllerRevision>, i32) {
        let history = self.history();
        let created = history.create_controller_revision(set, revision, &mut count);
        (created.await.unwrap(), count)
    }

    fn load(&self, revision: &Builder<ControllerRevision>) -> ControllerRevision {
        let object = revision.build();
        match self {
            Self::Real(_, api, cache) => {
                api.load(&CONTROLLER_REVISIONS, revision.text());
                cache.add(object.clone());
            }
            Self::Fake(history) => {
                let json = serde_json::from_str(&revision.text()).unwrap();
                history.revisions.put(json);
            }
        }
        object
    }

    fn stored(&self, name: &str) -> Option<Value> {
        match self {
            Self::Real(_, api, _) => api.object(&CONTROLLER_REVISIONS, "ns", name),
            Self::Fake(history) => history.revisions.json("ns", name),
        }
    }
}

fn web() -> StatefulSet {
    builders::set("web").build()
}

fn new_revision(set: &StatefulSet) -> NewRevision {
    NewRevision::new(set, &RevisionData::new(&set.spec.template).unwrap(), 4, 0)
}

fn everything() -> Selector {
    Selector::everything()
}

#[tokio::test]
async fn a_new_revision_is_stored_as_built() {
    for server in Server::both() {
        let set = web();
        let revision = new_revision(&set);
        let (created, count) = server.create(&set, &revision, 0).await;
        assert_eq!(count, 0);
        assert_eq!(*created.name, *revision.name);
        assert_eq!(created.revision, 4);
        assert_eq!(created.data.to_str(), *revision.data);
        let stored = server.stored(&revision.name).unwrap();
        assert_eq!(stored["metadata"]["namespace"], "ns");
        assert_eq!(stored["metadata"]["labels"], json!(revision.labels));
        assert_eq!(
            stored["metadata"]["ownerReferences"],
            json!([revision.owner])
        );
    }
}

#[tokio::test]
async fn same_name_and_data_returns_any_owners_revision() {
    // The fake counts this as a collision, see its ported test.
    let [server, _] = Server::both();
    let set = web();
    let revision = new_revision(&set);
    let foreign = owner_reference(("apps/v1", "StatefulSet"), "web", "old", Some(true));
    let before = builders::revision(&set, &revision.name, 1, &revision.data)
        .orphan()
        .owner(foreign);
    server.load(&before);
    let stored = server.stored(&revision.name);
    let (created, count) = server.create(&set, &revision, 0).await;
    assert_eq!(count, 0);
    assert_eq!(*created, before.build());
    assert_eq!(server.stored(&revision.name), stored, "nothing was written");
}

#[tokio::test]
async fn collision_changes_name_but_not_hash_label() {
    for server in Server::both() {
        let set = web();
        let revision = new_revision(&set);
        for collisions in [0, 1] {
            let name = revision.name_for(collisions);
            server.load(&builders::revision(&set, &name, 1, EMPTY));
        }
        let (created, count) = server.create(&set, &revision, 0).await;
        assert_eq!(count, 2);
        assert_eq!(*created.name, *revision.name_for(2));
        let label = created.labels.get(HASH_LABEL).unwrap();
        assert_eq!(revision.name_for(0), format!("web-{label}"));
        assert_eq!(server.stored(&revision.name_for(0)).unwrap()["revision"], 1);
    }
}

#[tokio::test]
async fn probing_starts_at_the_given_collision_count() {
    for server in Server::both() {
        let set = web();
        let revision =
            NewRevision::new(&set, &RevisionData::new(&set.spec.template).unwrap(), 4, 7);
        let (created, count) = server.create(&set, &revision, 7).await;
        assert_eq!(count, 7);
        assert_eq!(*created.name, *revision.name_for(7));
    }
}

/// Go's numbers wrap as well.
#[tokio::test]
async fn probing_beyond_the_last_count_wraps() {
    for server in Server::both() {
        let set = web();
        let data = RevisionData::new(&set.spec.template).unwrap();
        let revision = NewRevision::new(&set, &data, 4, i32::MAX);
        assert_eq!(*revision.name, *revision.name_for(i32::MAX));
        server.load(&builders::revision(&set, &revision.name, 1, EMPTY));
        let (created, count) = server.create(&set, &revision, i32::MAX).await;
        assert_eq!(count, i32::MIN);
        assert_eq!(*created.name, *revision.name_for(i32::MIN));
        assert_eq!(server.stored(&revision.name).unwrap()["revision"], 1);
    }
}

#[tokio::test]
async fn renumbering_changes_only_the_number() {
    for server in Server::both() {
        let set = web();
        let old = server.load(&builders::revision(&set, "web-1", 1, EMPTY));
        let renumbered = server
            .history()
            .update_controller_revision(&set, &old, 5)
            .await
            .unwrap();
        let expected = ControllerRevision { revision: 5, ..old };
        assert_eq!(*renumbered, expected);
        let mut stored = server.stored("web-1").unwrap();
        assert_eq!(stored["revision"], 5);
        stored["revision"] = 1.into();
        let text = builders::revision(&set, "web-1", 1, EMPTY).text();
        assert_eq!(stored, serde_json::from_str::<Value>(&text).unwrap());
    }
}

#[tokio::test]
async fn missing_revision_can_only_be_released() {
    for server in Server::both() {
        let set = web();
        let history = server.history();
        let gone = builders::revision(&set, "web-1", 1, EMPTY);
        let (gone, orphan) = (gone.build(), gone.orphan().build());
        let renumbered = history.update_controller_revision(&set, &gone, 2).await;
        assert!(renumbered.unwrap_err().is_not_found());
        let deleted = history.delete_controller_revision(&gone).await;
        assert!(deleted.unwrap_err().is_not_found());
        let adopted = history.adopt_controller_revision(&set, &orphan).await;
        assert!(adopted.unwrap_err().is_not_found());
        let released = history.release_controller_revision(&set, &gone).await;
        released.unwrap();
    }
}

#[tokio::test]
async fn a_deleted_revision_is_gone() {
    for server in Server::both() {
        let set = web();
        let old = server.load(&builders::revision(&set, "web-1", 1, EMPTY));
        let deleted = server.history().delete_controller_revision(&old).await;
        deleted.unwrap();
        assert_eq!(server.stored("web-1"), None);
    }
}

#[tokio::test]
async fn only_orphans_are_adopted() {
    for server in Server::both() {
        let (set, history) = (web(), server.history());
        let owner = owner_reference(("v1", "ConfigMap"), "c", "c", None);
        let orphan = builders::revision(&set, "web-1", 1, EMPTY)
            .orphan()
            .owner(owner.clone());
        let orphan = server.load(&orphan);
        let adopted = history.adopt_controller_revision(&set, &orphan).await;
        adopted.unwrap();
        let stored = server.stored("web-1").unwrap();
        assert_eq!(
            stored["metadata"]["ownerReferences"],
            json!([owner, set.controller_reference()])
        );

        let other = builders::set("db").build();
        let owned = server.load(&builders::revision(&other, "db-1", 1, EMPTY));
        let adopted = history.adopt_controller_revision(&set, &owned).await;
        assert_eq!(
            adopted.unwrap_err().to_string(),
            "attempt to adopt revision owned by StatefulSet db"
        );
        let owners = &server.stored("db-1").unwrap()["metadata"]["ownerReferences"];
        assert_eq!(*owners, json!([other.controller_reference()]));
    }
}

#[tokio::test]
async fn a_released_revision_keeps_its_other_owners() {
    for server in Server::both() {
        let set = web();
        let owner = owner_reference(("v1", "ConfigMap"), "c", "c", None);
        let owned = builders::revision(&set, "web-1", 1, EMPTY).owner(owner.clone());
        let owned = server.load(&owned);
        let released = server.history().release_controller_revision(&set, &owned);
        released.await.unwrap();
        let stored = server.stored("web-1").unwrap();
        assert_eq!(stored["metadata"]["ownerReferences"], json!([owner]));
    }
}

#[tokio::test]
async fn list_returns_own_revisions_and_selected_orphans() {
    for server in Server::both() {
        let set = web();
        let revision = |name: &str| builders::revision(&set, name, 1, EMPTY);
        let db = builders::set("db").build();
        let recreated = builders::set("web").uid("new").build();
        for revision in [
            revision("own"),
            revision("own-other-label").label("app", "db"),
            revision("orphan").orphan(),
            revision("orphan-other-label").orphan().label("app", "db"),
            revision("elsewhere").with("metadata.namespace", "other"),
            revision("orphan-elsewhere")
                .orphan()
                .with("metadata.namespace", "other"),
            builders::revision(&db, "of-another", 1, EMPTY).label("app", "web"),
            builders::revision(&recreated, "of-an-earlier", 1, EMPTY),
        ] {
            server.load(&revision);
        }
        let selector = set.spec.selector.compiled().unwrap();
        let names = |selector: &Selector| -> Vec<String> {
            let mut names: Vec<String> = server
                .history()
                .list_controller_revisions(&set, selector)
                .iter()
                .map(|revision| revision.name.to_string())
                .collect();
            names.sort();
            names
        };
        assert_eq!(names(selector), ["orphan", "own"]);
        assert_eq!(
            names(&everything()),
            ["orphan", "orphan-other-label", "own", "own-other-label"]
        );
        assert!(names(&Selector::nothing()).is_empty());
    }
}

#[test]
fn built_revision_equals_decoded_revision() {
    let revision = builders::revision(&web(), "web-1", 3, EMPTY);
    let decoded = ControllerRevision::decode(&revision.text()).unwrap();
    assert_eq!(decoded.data.to_str(), EMPTY);
    assert_eq!(decoded, revision.build());
}
