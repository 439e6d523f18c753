//! Release. Upstream's patch reactor is never reached; here the patch and its effect are checked.

use serde_json::{Value, json};
use statefulset_client::rest::PatchType;

use super::fixtures::{Server, cached, object, orphan, revision, ss1, ss2};

/// Releases a revision from `ss1`.
async fn release(server: &Server, revision: &Value) {
    let revision = cached(revision);
    let set = ss1();
    let released = server
        .history()
        .release_controller_revision(&set, &revision);
    released.await.unwrap();
}

/// Releases a stored revision and checks its remaining owners.
async fn leaves_owners(server: &Server, revision: &Value, owners: &Value) {
    let name = server.load(revision).name;
    release(server, revision).await;
    let stored = server.stored(&name).unwrap();
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

async fn ignores_a_missing_revision(server: &Server) {
    release(server, &owned()).await;
    assert_eq!(server.count(), 0, "no revision is created");
}

mod test_real_history_release_controller_revision {
    use super::*;

    #[tokio::test]
    async fn releasing_an_owned_revision_succeeds() {
        let server = Server::real();
        leaves_owners(&server, &owned(), &json!([])).await;
        let Server::Real { api, .. } = &server else {
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
        leaves_owners(&Server::real(), &unowned(), &json!([])).await;
    }

    #[tokio::test]
    async fn releasing_a_revision_owned_by_another_controller_succeeds() {
        let owners = json!([ss2().controller_reference()]);
        leaves_owners(&Server::real(), &of_another(), &owners).await;
    }

    #[tokio::test]
    async fn releasing_a_non_existent_revision_succeeds() {
        ignores_a_missing_revision(&Server::real()).await;
    }
}

mod test_fake_history_release_controller_revision {
    use super::*;

    #[tokio::test]
    async fn releasing_an_owned_revision_succeeds() {
        leaves_owners(&Server::fake(), &owned(), &json!([])).await;
    }

    #[tokio::test]
    async fn releasing_an_orphan_succeeds() {
        leaves_owners(&Server::fake(), &unowned(), &json!([])).await;
    }

    #[tokio::test]
    async fn releasing_a_revision_owned_by_another_controller_succeeds() {
        let owners = json!([ss2().controller_reference()]);
        leaves_owners(&Server::fake(), &of_another(), &owners).await;
    }

    #[tokio::test]
    async fn releasing_a_non_existent_revision_succeeds() {
        ignores_a_missing_revision(&Server::fake()).await;
    }
}
