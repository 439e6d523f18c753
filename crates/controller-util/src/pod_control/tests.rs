//! Tests of patch bodies, and of the writes reported to the consistency store.

use statefulset_client::fake::{FakeClientset, Verb};

use super::*;
use crate::consistency::MockConsistencyStore;
use crate::testing::builders;

#[test]
fn patches_match_go() {
    let owner = builders::set("web").build().controller_reference();
    assert_eq!(
        adoption_patch(&owner, "p", &[]),
        r#"{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"web","uid":"web-uid","controller":true,"blockOwnerDeletion":true}],"uid":"p"}}"#
    );
    assert_eq!(
        release_patch("p", &["web-uid"], &[]),
        r#"{"metadata":{"uid":"p","ownerReferences":[{"$patch":"delete","uid":"web-uid"}]}}"#
    );
}

#[tokio::test]
async fn adoption_is_recorded_for_the_owner_in_the_response() {
    let set = builders::set("web").build();
    let api = FakeClientset::new();
    api.load(&PODS, builders::pod(&set, 0).orphan().text());
    let mut consistency = MockConsistencyStore::new();
    consistency
        .expect_wrote_at()
        .times(1)
        .withf(|owner, uid, resource, version| {
            owner.to_string() == "ns/web"
                && uid == "web-uid"
                && *resource == TrackedResource::Pods
                && version == "5"
        })
        .return_const(());
    let control = RealPodControl::new(api.rest_client(), Arc::new(consistency));
    let pod = ObjectKey::new("ns", "web-0");
    let patch = adoption_patch(&set.controller_reference(), "web-0-uid", &[]);
    control.patch_pod(&pod, patch.clone()).await.unwrap();

    let action = &api.actions()[0];
    assert_eq!((action.verb, &*action.name), (Verb::Patch, "web-0"));
    assert_eq!(action.patch_type, Some(PatchType::Strategic));
    assert_eq!(action.body, patch);
    let owner = &api.object(&PODS, "ns", "web-0").unwrap()["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], "web-uid");
}

#[tokio::test]
async fn release_is_not_recorded() {
    let set = builders::set("web").build();
    let api = FakeClientset::new();
    api.load(&PODS, builders::pod(&set, 0).text());
    let consistency = MockConsistencyStore::new();
    let control = RealPodControl::new(api.rest_client(), Arc::new(consistency));
    let pod = ObjectKey::new("ns", "web-0");
    let patch = release_patch("web-0-uid", &["web-uid"], &[]);
    control.patch_pod(&pod, patch).await.unwrap();
    let stored = api.object(&PODS, "ns", "web-0").unwrap();
    assert_eq!(stored["metadata"].get("ownerReferences"), None);
}

#[tokio::test]
async fn failed_patch_returns_its_error() {
    let api = FakeClientset::new();
    let consistency = MockConsistencyStore::new();
    let control = RealPodControl::new(api.rest_client(), Arc::new(consistency));
    let error = control
        .patch_pod(&ObjectKey::new("ns", "web-0"), "{}".to_owned())
        .await
        .unwrap_err();
    assert!(error.is_not_found(), "{error}");
}

#[tokio::test]
async fn response_that_is_not_a_pod_counts_as_success() {
    let api = FakeClientset::new();
    api.react(Verb::Patch, "pods", |_| {
        Some(Ok(r#"{"metadata":7}"#.to_owned()))
    });
    let consistency = MockConsistencyStore::new();
    let control = RealPodControl::new(api.rest_client(), Arc::new(consistency));
    let pod = ObjectKey::new("ns", "web-0");
    control.patch_pod(&pod, "{}".to_owned()).await.unwrap();
}
