//! A client of any version of kube writes, patches and watches. `make check-other-kube` runs this file
//! with another one.

use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{
    DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::{Api, Client};
use kube_test_control_plane::TestControlPlane;

#[tokio::test(start_paused = true)]
async fn a_client_of_any_version_writes_and_watches() {
    let plane = TestControlPlane::builder().start().await;
    let client = Client::new(plane.service(), "default");
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let mut map = ConfigMap::default();
    map.metadata.name = Some("settings".to_owned());
    maps.create(&PostParams::default(), &map).await.unwrap();
    let listed = maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items.len(), 1);

    map.data = Some([("color".to_owned(), "blue".to_owned())].into());
    let apply = PatchParams::apply("test");
    let patched = maps.patch("settings", &apply, &Patch::Merge(&map)).await;
    assert_eq!(patched.unwrap().data, map.data);
    maps.delete("settings", &DeleteParams::default())
        .await
        .unwrap();

    let version = listed.metadata.resource_version.unwrap();
    let events = maps.watch(&WatchParams::default(), &version).await.unwrap();
    pin_mut!(events);
    let modified = events.next().await.unwrap().unwrap();
    assert!(matches!(modified, WatchEvent::Modified(map) if map.data.is_some()));
    let deleted = events.next().await.unwrap().unwrap();
    assert!(matches!(deleted, WatchEvent::Deleted(_)));
    let missing = maps.get("settings").await.unwrap_err();
    assert!(matches!(missing, kube::Error::Api(status) if status.code == 404));
}
