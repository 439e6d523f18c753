//! An operator with a custom resource, a finalizer and webhooks, and its tests: a response is lost, no
//! object remains, and a webhook hangs.
//!
//! ```sh
//! cargo test -p kube-test-control-plane --example operator   # the test
//! cargo run -p kube-test-control-plane --example operator    # the operator, on your cluster
//! ```

mod webhooks;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::finalizer::{Error, Event, finalizer};
use kube::runtime::watcher;
use kube::{Api, Client, CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::net::TcpListener;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Page", namespaced)]
struct PageSpec {
    text: String,
}

/// The second version of pages, which the operator's webhook converts.
mod v2 {
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "example.com", version = "v2", kind = "Page", namespaced)]
    pub(crate) struct PageSpec {
        pub(crate) lines: Vec<String>,
    }
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

/// Creates the definition and the configuration of the webhooks.
async fn install(client: &Client) -> Result<(), webhooks::Error> {
    let definitions = Api::all(client.clone());
    let create = PostParams::default();
    definitions
        .create(&create, &webhooks::definition()?)
        .await?;
    let configurations = Api::all(client.clone());
    configurations
        .create(&create, &webhooks::configuration()?)
        .await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), webhooks::Error> {
    let client = Client::try_default().await?;
    install(&client).await?;
    let listener = TcpListener::bind("0.0.0.0:8080").await?;
    tokio::select! {
        () = run(client) => Ok(()),
        served = webhooks::serve(listener) => served,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Namespace;
    use kube_test_control_plane::TestControlPlane;
    use kube_test_control_plane::audit::Settle;
    use kube_test_control_plane::faults::{
        FaultAction, RequestMatcher, Schedule, WebhookAction, WebhookMatcher, WebhookRule,
    };
    use kube_test_control_plane::route::Verb;
    use tower::service_fn;

    use super::*;

    /// Starts a control plane that calls the operator's webhooks.
    async fn start() -> TestControlPlane {
        let plane = TestControlPlane::builder()
            .all_actors()
            .webhook("default", "pages", service_fn(webhooks::respond))
            .start()
            .await;
        install(&plane.client()).await.unwrap();
        let namespaces = Api::<Namespace>::all(plane.client());
        let mut public = Namespace::default();
        public.metadata.name = Some(PUBLIC.to_owned());
        let created = namespaces.create(&PostParams::default(), &public).await;
        created.unwrap();
        plane
    }

    fn page(text: &str) -> Page {
        let text = text.to_owned();
        Page::new("home", PageSpec { text })
    }

    async fn create(pages: &Api<Page>, text: &str) {
        let created = pages.create(&PostParams::default(), &page(text)).await;
        created.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn page_is_published_after_a_lost_response_and_withdrawn() {
        let plane = start().await;
        let (server, client) = (plane.server(), plane.client());
        // The response to the finalizer's patch is lost.
        let writes = RequestMatcher::any().resource("pages").verb(Verb::Patch);
        server
            .faults()
            .inject(writes, 1, FaultAction::CommitThenDrop);

        let pages = Api::<Page>::default_namespaced(client.clone());
        let maps = Api::<ConfigMap>::namespaced(client.clone(), PUBLIC);
        let settled = Settle::quiet_for(Duration::from_secs(30));
        let test = async {
            create(&pages, "Welcome").await;
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

    #[tokio::test(start_paused = true)]
    async fn empty_pages_are_denied_in_both_versions() {
        let plane = start().await;
        let create = PostParams::default();
        let denied =
            "admission webhook \"pages.example.com\" denied the request: a page needs a text";
        let pages = Api::<Page>::default_namespaced(plane.client());
        let error = pages.create(&create, &page(" ")).await.unwrap_err();
        assert!(error.to_string().contains(denied), "{error}");
        // The webhook reviews `v1` alone: the server converts the object for it.
        let newer = Api::<v2::Page>::default_namespaced(plane.client());
        let lines = Vec::new();
        let empty = v2::Page::new("home", v2::PageSpec { lines });
        let error = newer.create(&create, &empty).await.unwrap_err();
        assert!(error.to_string().contains(denied), "{error}");
        plane.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn pages_have_two_versions() {
        let plane = start().await;
        let pages = Api::<Page>::default_namespaced(plane.client());
        let newer = Api::<v2::Page>::default_namespaced(plane.client());
        create(&pages, "Hello\nWorld").await;
        let mut found = newer.get("home").await.unwrap();
        assert_eq!(found.spec.lines, ["Hello", "World"]);
        found.spec.lines.truncate(1);
        newer
            .replace("home", &PostParams::default(), &found)
            .await
            .unwrap();
        assert_eq!(pages.get("home").await.unwrap().spec.text, "Hello");
        plane.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn page_is_published_after_its_webhook_hung() {
        let plane = start().await;
        let (server, client) = (plane.server(), plane.client());
        let pages = Api::<Page>::default_namespaced(client.clone());
        create(&pages, "Welcome").await;
        // The operator's first write, that of its finalizer, fails after ten seconds.
        let hang = WebhookRule::new(
            WebhookMatcher::any().webhook("pages.example.com"),
            WebhookAction::Hang,
        );
        let id = server
            .faults()
            .add_webhook_rule(hang.when(Schedule::times(1)));
        let maps = Api::<ConfigMap>::namespaced(client.clone(), PUBLIC);
        let settled = Settle::quiet_for(Duration::from_secs(30));
        let test = async {
            server.audit().settle(&settled).await.unwrap();
            assert_eq!(server.faults().hits(id), 1);
            assert!(maps.get_opt("home").await.unwrap().is_some());
        };
        tokio::select! { () = run(client) => panic!("the operator ended"), () = test => {} }
    }
}
