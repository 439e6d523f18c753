//! Adoption. Upstream's patch reactor is never reached; here the patch and its effect are checked.

use serde_json::{Value, json};
use statefulset_client::rest::PatchType;

use super::fixtures::{Server, cached, object, orphan, revision, ss1, ss2};
use crate::error::Error;

async fn adopt(server: &Server, revision: &Value) -> Result<(), Error> {
    let revision = cached(revision);
    let set = ss1();
    server
        .history()
        .adopt_controller_revision(&set, &revision)
        .await
        .map(drop)
}

/// Adopts a stored orphan.
async fn adopts_an_orphan(server: &Server) {
    let revision = orphan(&revision(&ss1(), 2, Some(0)));
    let name = server.load(&revision).name;
    adopt(server, &revision).await.unwrap();
    let owners = &server.stored(&name).unwrap()["metadata"]["ownerReferences"];
    assert_eq!(*owners, json!([ss1().controller_reference()]));
}

/// Fails to adopt a revision that another set owns, and sends no request.
async fn refuses_an_owned_revision(server: &Server) {
    let revision = object(&revision(&ss2(), 1, Some(0)));
    let name = server.load(&revision).name;
    let error = adopt(server, &revision).await.unwrap_err();
    assert!(matches!(error, Error::Owned { .. }), "{error}");
    assert_eq!(server.requests(), [""; 0]);
    assert_eq!(server.stored(&name), Some(revision));
}

/// Fails to adopt a revision that isn't stored.
async fn fails_on_a_missing_revision(server: &Server) {
    let error = adopt(server, &orphan(&revision(&ss1(), 2, Some(0)))).await;
    assert!(error.unwrap_err().is_not_found());
    assert_eq!(server.count(), 0);
}

mod test_real_history_adopt_controller_revision {
    use super::*;

    #[tokio::test]
    async fn adopting_an_orphan_succeeds() {
        let server = Server::real();
        adopts_an_orphan(&server).await;
        let Server::Real { api, .. } = &server else {
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
        refuses_an_owned_revision(&Server::real()).await;
    }

    #[tokio::test]
    async fn adopting_a_non_existent_revision_fails() {
        fails_on_a_missing_revision(&Server::real()).await;
    }
}

mod test_fake_history_adopt_controller_revision {
    use super::*;

    #[tokio::test]
    async fn adopting_an_orphan_succeeds() {
        adopts_an_orphan(&Server::fake()).await;
    }

    #[tokio::test]
    async fn adopting_an_owned_revision_fails() {
        refuses_an_owned_revision(&Server::fake()).await;
    }

    #[tokio::test]
    async fn adopting_a_non_existent_revision_fails() {
        fails_on_a_missing_revision(&Server::fake()).await;
    }
}
