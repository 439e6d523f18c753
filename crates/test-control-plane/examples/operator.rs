//! An operator with a custom resource and a finalizer, and its test: a response is lost, and no
//! object remains.
//!
//! ```sh
//! cargo test -p kube-test-control-plane --example operator   # the test
//! cargo run -p kube-test-control-plane --example operator    # the operator, on your cluster
//! ```

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::finalizer::{Error, Event, finalizer};
use kube::runtime::watcher;
use kube::{Api, Client, CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Page", namespaced)]
struct PageSpec {
    text: String,
}

/// The namespace of published pages.
const PUBLIC: &str = "public";

/// Publishes a page's text as a config map in another namespace. Owner references don't reach
/// there, so a finalizer withdraws the map.
async fn reconcile(page: Arc<Page>, client: Arc<Client>) -> Result<Action, Error<kube::Error>> {
    let namespace = page.namespace().unwrap_or_default();
    let pages = Api::<Page>::namespaced(Client::clone(&client), &namespace);
    let maps = Api::<ConfigMap>::namespaced(Client::clone(&client), PUBLIC);
    finalizer(&pages, "example.com/withdraw", page, |event| async {
        match event {
            Event::Apply(page) => publish(&maps, &page).await,
            Event::Cleanup(page) => withdraw(&maps, &page).await,
        }
    })
    .await
}

async fn publish(maps: &Api<ConfigMap>, page: &Page) -> kube::Result<Action> {
    let name = page.name_any();
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"text": page.spec.text},
    });
    let apply = PatchParams::apply("pages").force();
    maps.patch(&name, &apply, &Patch::Apply(map)).await?;
    Ok(Action::await_change())
}

async fn withdraw(maps: &Api<ConfigMap>, page: &Page) -> kube::Result<Action> {
    match maps
        .delete(&page.name_any(), &DeleteParams::default())
        .await
    {
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        deleted => drop(deleted?),
    }
    Ok(Action::await_change())
}

/// Runs the operator. Prints the errors of reconciliations, which it retries.
async fn run(client: Client) {
    let pages = Controller::new(Api::<Page>::all(client.clone()), watcher::Config::default());
    let retry = |page: Arc<Page>, error: &Error<kube::Error>, _: Arc<Client>| {
        #[expect(clippy::print_stderr, reason = "the operator's log")]
        {
            eprintln!("reconciling {}: {error}", page.name_any());
        }
        Action::requeue(Duration::from_secs(1))
    };
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
    use k8s_openapi::api::core::v1::Namespace;
    use kube::api::PostParams;
    use kube_test_control_plane::TestControlPlane;
    use kube_test_control_plane::audit::Settle;
    use kube_test_control_plane::faults::{FaultAction, RequestMatcher};
    use kube_test_control_plane::route::Verb;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn page_is_published_after_a_lost_response_and_withdrawn() {
        let plane = TestControlPlane::builder()
            .all_actors()
            .crd::<Page>()
            .start()
            .await;
        let (server, client) = (plane.server(), plane.client());
        let namespaces = Api::<Namespace>::all(client.clone());
        let mut public = Namespace::default();
        public.metadata.name = Some(PUBLIC.to_owned());
        let created = namespaces.create(&PostParams::default(), &public).await;
        created.unwrap();
        // The response to the finalizer's patch is lost.
        let writes = RequestMatcher::any().resource("pages").verb(Verb::Patch);
        server
            .faults()
            .inject(writes, 1, FaultAction::CommitThenDrop);

        let spec = PageSpec {
            text: "Welcome".to_owned(),
        };
        let page = Page::new("home", spec);
        let pages = Api::<Page>::default_namespaced(client.clone());
        let maps = Api::<ConfigMap>::namespaced(client.clone(), PUBLIC);
        let settled = Settle::quiet_for(Duration::from_secs(30));
        let test = async {
            pages.create(&PostParams::default(), &page).await.unwrap();
            server.audit().settle(&settled).await.unwrap();
            let map = maps.get("home").await.unwrap();
            assert_eq!(map.data.unwrap()["text"], "Welcome");

            let deleted = pages.delete("home", &DeleteParams::default()).await;
            deleted.unwrap();
            server.audit().settle(&settled).await.unwrap();
            assert!(maps.get_opt("home").await.unwrap().is_none());
            assert!(pages.get_opt("home").await.unwrap().is_none());
        };
        tokio::select! { () = run(client) => panic!("the operator ended"), () = test => {} }
    }
}
