//! An operator with a custom resource, and its test: a response is lost, and no object remains.
//!
//! ```sh
//! cargo test -p kube-test-control-plane --example operator   # the test
//! cargo run -p kube-test-control-plane --example operator    # the operator, on your cluster
//! ```

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Api, Client, CustomResource, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Page", namespaced)]
struct PageSpec {
    text: String,
}

/// Writes a page's text to a config map, which is deleted with the page.
async fn reconcile(page: Arc<Page>, client: Arc<Client>) -> kube::Result<Action> {
    let namespace = page.namespace().unwrap_or_default();
    let maps = Api::<ConfigMap>::namespaced(Client::clone(&client), &namespace);
    let owners = Vec::from_iter(page.controller_owner_ref(&()));
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"text": page.spec.text},
        "metadata": {"name": page.name_any(), "ownerReferences": owners},
    });
    let apply = PatchParams::apply("pages").force();
    maps.patch(&page.name_any(), &apply, &Patch::Apply(map))
        .await?;
    Ok(Action::await_change())
}

async fn run(client: Client) {
    let pages = Controller::new(Api::<Page>::all(client.clone()), watcher::Config::default());
    let retry =
        |_: Arc<Page>, _: &kube::Error, _: Arc<Client>| Action::requeue(Duration::from_secs(1));
    let results = pages.run(reconcile, retry, Arc::new(client));
    results.for_each(|_| async {}).await;
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> kube::Result<()> {
    run(Client::try_default().await?).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use kube::api::{DeleteParams, PostParams};
    use kube_test_control_plane::TestControlPlane;
    use kube_test_control_plane::audit::Settle;
    use kube_test_control_plane::faults::{FaultAction, RequestMatcher};
    use kube_test_control_plane::route::Verb;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn page_gets_its_map_after_a_lost_answer() {
        let plane = TestControlPlane::builder()
            .all_actors()
            .crd::<Page>()
            .start()
            .await;
        let (server, client) = (plane.server(), plane.client());
        let writes = RequestMatcher::any()
            .resource("configmaps")
            .verb(Verb::Patch);
        server
            .faults()
            .inject(writes, 1, FaultAction::CommitThenDrop);

        let page: Page = Page::new(
            "home",
            PageSpec {
                text: "Welcome".to_owned(),
            },
        );
        let pages = Api::<Page>::default_namespaced(client.clone());
        let maps = Api::<ConfigMap>::default_namespaced(client.clone());
        let settled = Settle::quiet_for(Duration::from_secs(30));
        let test = async {
            pages.create(&PostParams::default(), &page).await.unwrap();
            server.audit().settle(&settled).await.unwrap();
            assert_eq!(
                maps.get("home").await.unwrap().data.unwrap()["text"],
                "Welcome"
            );

            pages
                .delete("home", &DeleteParams::default())
                .await
                .unwrap();
            server.audit().settle(&settled).await.unwrap();
            assert!(maps.get_opt("home").await.unwrap().is_none());
        };
        tokio::select! { () = run(client) => panic!("the operator ended"), () = test => {} }
    }
}
