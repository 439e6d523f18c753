//! Release. Upstream's patch reactor is never reached; here the patch and its effect are checked.

use serde_json::{Value, json};
use statefulset_client::rest::PatchType;

use super::fixtures::{World, cached, object, orphan, revision, ss1, ss2};

/// Releases a revision from `ss1`.
async fn release(world: &World, revision: &Value) {
    let revision = cached(revision);
    let set = ss1();
    let released = world.history().release_controller_revision(&set, &revision);
    released.await.unwrap();
}

/// Releases a stored revision and checks its remaining owners.
async fn leaves_owners(world: &World, revision: &Value, owners: &Value) {
    let name = world.put_revision(revision).name;
    release(world, revision).await;
    let stored = world.revision(&name).unwrap();
    let left = stored["metadata"].get("ownerReferences");
    assert_eq!(left.unwrap_or(&json!([])), owners);
}

fn owned() -> Value {
    object(&revision(&ss1(), 1, None))
}

fn unowned() -> Value {
    orphan(&revision(&ss1(), 2, None))
}

fn of_another() -> Value {
    object(&revision(&ss2(), 1, None))
}

async fn ignores_a_missing_revision(world: &World) {
    release(world, &owned()).await;
    assert_eq!(world.count(), 0, "no revision is created");
}

mod test_real_history_release_controller_revision {
    use super::*;

    #[tokio::test]
    async fn releasing_an_owned_revision_succeeds() {
        let world = World::real();
        leaves_owners(&world, &owned(), &json!([])).await;
        let World::Real { api, .. } = &world else {
            unreachable!("the case uses the real history");
        };
        let actions = api.actions();
        let body = format!(
            concat!(
                r#"{{"metadata":{{"uid":{},"#,
                r#""ownerReferences":[{{"$patch":"delete","uid":"ss1"}}]}}}}"#
            ),
            owned()["metadata"]["uid"]
        );
        assert_eq!(actions[0].body, body);
        assert_eq!(actions[0].patch_type, Some(PatchType::Strategic));
    }

    #[tokio::test]
    async fn releasing_an_orphan_succeeds() {
        leaves_owners(&World::real(), &unowned(), &json!([])).await;
    }

    #[tokio::test]
    async fn releasing_a_revision_owned_by_another_controller_succeeds() {
        let owners = json!([ss2().controller_reference()]);
        leaves_owners(&World::real(), &of_another(), &owners).await;
    }

    #[tokio::test]
    async fn releasing_a_non_existent_revision_succeeds() {
        ignores_a_missing_revision(&World::real()).await;
    }
}

mod test_fake_history_release_controller_revision {
    use super::*;

    #[tokio::test]
    async fn releasing_an_owned_revision_succeeds() {
        leaves_owners(&World::fake(), &owned(), &json!([])).await;
    }

    #[tokio::test]
    async fn releasing_an_orphan_succeeds() {
        leaves_owners(&World::fake(), &unowned(), &json!([])).await;
    }

    #[tokio::test]
    async fn releasing_a_revision_owned_by_another_controller_succeeds() {
        let owners = json!([ss2().controller_reference()]);
        leaves_owners(&World::fake(), &of_another(), &owners).await;
    }

    #[tokio::test]
    async fn releasing_a_non_existent_revision_succeeds() {
        ignores_a_missing_revision(&World::fake()).await;
    }
}
