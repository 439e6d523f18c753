//! A new user's project, written from the guide: an operator and a test with a lost response.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::{Controller, controller::Action, watcher};
use kube::{Api, Client, CustomResource, Resource, ResourceExt};
use kube_test_control_plane::faults::{FaultAction, RequestMatcher};
use kube_test_control_plane::{TestControlPlane, audit::Settle, route::Verb};
use serde_json::json;

#[derive(
    CustomResource, Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema,
)]
#[kube(group = "example.com", version = "v1", kind = "Page", namespaced)]
struct PageSpec {
    text: String,
}

async fn reconcile(page: Arc<Page>, maps: Arc<Api<ConfigMap>>) -> kube::Result<Action> {
    let (name, owner) = (page.name_any(), page.controller_owner_ref(&()));
    let map = Patch::Apply(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"text": page.spec.text},
        "metadata": {"name": name, "ownerReferences": [owner]},
    }));
    let pages = PatchParams::apply("pages").force();
    maps.patch(&name, &pages, &map).await?;
    Ok(Action::await_change())
}

async fn run(client: Client) {
    let pages = Api::<Page>::all(client.clone());
    let maps = Arc::new(Api::default_namespaced(client));
    let retry = |_: Arc<Page>, _: &kube::Error, _| Action::requeue(Duration::from_secs(1));
    let results = Controller::new(pages, watcher::Config::default()).run(reconcile, retry, maps);
    results.for_each(|_| async {}).await;
}

#[tokio::test(start_paused = true)]
async fn page_gets_its_map_after_a_lost_answer() {
    let plane = TestControlPlane::builder().crd::<Page>().start().await;
    let (server, client) = (plane.server(), plane.client());
    let (faults, applies) = (server.faults(), RequestMatcher::any().verb(Verb::Patch));
    faults.inject(applies, 1, FaultAction::CommitThenDrop);
    let page = Page::new("home", PageSpec { text: "Hi".into() });
    let pages = Api::<Page>::default_namespaced(client.clone());
    let posted = PostParams::default();
    pages.create(&posted, &page).await.unwrap();
    let settled = Settle::quiet_for(Duration::from_secs(30));
    tokio::select! {
        () = run(client.clone()) => panic!("the operator ended"),
        settled = server.audit().settle(&settled) => settled.unwrap(),
    }
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let map = maps.get("home").await.unwrap();
    assert_eq!(map.data.unwrap()["text"], "Hi");
}
