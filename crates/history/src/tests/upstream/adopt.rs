//! Adoption. Upstream's patch reactor is never reached; here the patch and its effect are checked.

use serde_json::{Value, json};
use statefulset_client::rest::PatchType;

use super::fixtures::{World, cached, object, orphan, revision, ss1, ss2};
use crate::error::Error;

async fn adopt(world: &World, revision: &Value) -> Result<(), Error> {
    let revision = cached(revision);
    let set = ss1();
    world
        .history()
        .adopt_controller_revision(&set, &revision)
        .await
        .map(drop)
}

/// Adopts a stored orphan.
async fn adopts_an_orphan(world: &World) {
    let revision = orphan(&revision(&ss1(), 2, Some(0)));
    let name = world.put_revision(&revision).name;
    adopt(world, &revision).await.unwrap();
    let owners = &world.revision(&name).unwrap()["metadata"]["ownerReferences"];
    assert_eq!(*owners, json!([ss1().controller_reference()]));
}

/// Fails to adopt a revision that another set owns, and sends no request.
async fn refuses_an_owned_revision(world: &World) {
    let revision = object(&revision(&ss2(), 1, Some(0)));
    let name = world.put_revision(&revision).name;
    let error = adopt(world, &revision).await.unwrap_err();
    assert!(matches!(error, Error::Owned { .. }), "{error}");
    assert_eq!(world.requests(), [""; 0]);
    assert_eq!(world.revision(&name), Some(revision));
}

/// Fails to adopt a revision that isn't stored.
async fn fails_on_a_missing_revision(world: &World) {
    let error = adopt(world, &orphan(&revision(&ss1(), 2, Some(0)))).await;
    assert!(error.unwrap_err().is_not_found());
    assert_eq!(world.count(), 0);
}

mod test_real_history_adopt_controller_revision {
    use super::*;

    #[tokio::test]
    async fn adopting_an_orphan_succeeds() {
        let world = World::real();
        adopts_an_orphan(&world).await;
        let World::Real { api, .. } = &world else {
            unreachable!("the case uses the real history");
        };
        let actions = api.actions();
        let name = revision(&ss1(), 2, Some(0)).name;
        let body = format!(
            concat!(
                r#"{{"metadata":{{"ownerReferences":[{{"apiVersion":"apps/v1","#,
                r#""kind":"StatefulSet","name":"ss1","uid":"ss1","controller":true,"#,
                r#""blockOwnerDeletion":true}}],"uid":"{}-uid"}}}}"#
            ),
            name
        );
        assert_eq!(actions[0].body, body);
        assert_eq!(actions[0].patch_type, Some(PatchType::Strategic));
    }

    #[tokio::test]
    async fn adopting_an_owned_revision_fails() {
        refuses_an_owned_revision(&World::real()).await;
    }

    #[tokio::test]
    async fn adopting_a_non_existent_revision_fails() {
        fails_on_a_missing_revision(&World::real()).await;
    }
}

mod test_fake_history_adopt_controller_revision {
    use super::*;

    #[tokio::test]
    async fn adopting_an_orphan_succeeds() {
        adopts_an_orphan(&World::fake()).await;
    }

    #[tokio::test]
    async fn adopting_an_owned_revision_fails() {
        refuses_an_owned_revision(&World::fake()).await;
    }

    #[tokio::test]
    async fn adopting_a_non_existent_revision_fails() {
        fails_on_a_missing_revision(&World::fake()).await;
    }
}
