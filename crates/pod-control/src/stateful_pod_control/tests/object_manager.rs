//! Requests for pods and claims, and reports to the consistency store.

use serde_json::json;
use statefulset_client::cache::indexer::Indexer;
use statefulset_client::fake::{Action, CallError, CallFault, FakeClientset, Verb};
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::consistency::ConsistencyStore;
use statefulset_controller_util::testing::WriteLog;
use statefulset_controller_util::tracked_client::TrackedClient;

use super::*;
use crate::stateful_set_utils::persistent_volume_claims;

/// An object manager with a fake API.
struct Manager {
    api: FakeClientset,
    claims: Arc<Indexer<Claim>>,
    log: Arc<WriteLog>,
    objects: RealObjectManager,
    set: StatefulSet,
}

fn manager() -> Manager {
    let api = FakeClientset::new();
    let claims = Arc::new(Indexer::new());
    let log = Arc::new(WriteLog::default());
    let consistency: Arc<dyn ConsistencyStore> = Arc::<WriteLog>::clone(&log);
    Manager {
        objects: RealObjectManager::new(
            TrackedClient::new(api.rest_client(), consistency),
            Arc::clone(&claims),
        ),
        set: builders::set("web").claim_template("data").build(),
        api,
        claims,
        log,
    }
}

impl Manager {
    fn only_request(&self) -> Action {
        let mut actions = self.api.actions();
        assert_eq!(actions.len(), 1);
        self.api.clear_actions();
        actions.remove(0)
    }

    /// Responds to a verb's requests with this version.
    fn answer(&self, verb: Verb, resource: &str, version: &str) {
        let text = json!({"metadata": {"name": "x", "resourceVersion": version}}).to_string();
        self.api
            .react(verb, resource, move |_| Some(Ok(text.clone())));
    }
}

#[tokio::test]
async fn create_pod_posts_and_reports_the_version() {
    let manager = manager();
    manager.answer(Verb::Create, "pods", "41");
    let pod = NewPod::new(&manager.set, "web-1", Ordinal::from(0));
    let created = manager.objects.create_pod(&manager.set, &pod).await;
    assert!(created.unwrap().is_none(), "only an outdated pod is needed");
    let request = manager.only_request();
    assert_eq!(
        (&*request.namespace, request.body),
        ("ns", pod.body().unwrap())
    );
    assert_eq!(manager.log.take(), ["ns/web web-uid pods 41"]);
}

#[tokio::test]
async fn update_pod_puts_the_whole_live_object() {
    let manager = manager();
    let pod: Builder<Pod> = builders::pod(&manager.set, 0)
        .with("spec.future", json!({"z": "<", "a": [1]}))
        .with("metadata.resourceVersion", "12");
    manager.api.load(&PODS, pod.text());
    let live = manager.objects.read_pod("ns", "web-0").await.unwrap();
    assert_eq!(live.object, pod.build());
    assert_eq!(manager.only_request().verb, Verb::Get);

    manager.answer(Verb::Update, "pods", "42");
    manager
        .objects
        .update_pod(&manager.set, live)
        .await
        .unwrap();
    let request = manager.only_request();
    assert_eq!((request.verb, &*request.name), (Verb::Update, "web-0"));
    assert_eq!(request.json(), pod.json());
    assert!(request.body.contains(r#""z":"\u003c""#));
    assert_eq!(manager.log.take(), ["ns/web web-uid pods 42"]);
}

#[tokio::test]
async fn delete_pod_sends_uid_and_reports_deleted_pods_alone() {
    let manager = manager();
    let pod = builders::pod(&manager.set, 0);
    manager.api.load(&PODS, pod.text());
    let pod = pod.build();
    // Waiting for a pod's end that was not observed would stop the set's syncs if the response is
    // wrong, as one from a proxy may be.
    for gone in [false, true] {
        let result = manager
            .objects
            .delete_pod(&manager.set, &pod, Timing::Queued)
            .await;
        assert_eq!(result.is_err_and(|error| error.is_not_found()), gone);
        let request = manager.only_request();
        assert_eq!((request.verb, &*request.name), (Verb::Delete, "web-0"));
        assert_eq!(
            request.json(),
            json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "web-0-uid"}})
        );
        let mut reported = vec!["ns/web web-uid deleted ns/web-0 web-0-uid"];
        reported.retain(|_| !gone);
        assert_eq!(manager.log.take(), reported);
    }
}

#[tokio::test]
async fn failed_deletion_is_not_reported() {
    let manager = manager();
    let rule = CallFault::new(Verb::Delete, "pods", 1, CallError::Conflict);
    manager.api.fail(rule);
    let pod = builders::pod(&manager.set, 0).build();
    let error = manager
        .objects
        .delete_pod(&manager.set, &pod, Timing::Queued)
        .await;
    assert!(error.unwrap_err().is_conflict());
    assert!(manager.log.take().is_empty());
}

#[tokio::test]
async fn create_claim_posts_and_reports_the_version() {
    let manager = manager();
    manager.answer(Verb::Create, "persistentvolumeclaims", "43");
    let claim = persistent_volume_claims(&manager.set, Ordinal::from(0))
        .next()
        .unwrap();
    manager
        .objects
        .create_claim(&manager.set, &claim)
        .await
        .unwrap();
    assert_eq!(manager.only_request().body, claim.body().unwrap());
    assert_eq!(
        manager.log.take(),
        ["ns/web web-uid persistentvolumeclaims 43"]
    );
}

#[tokio::test]
async fn update_claim_puts_the_whole_live_object() {
    let manager = manager();
    let claim = builders::claim(&manager.set, "data", 0).with("spec.future", "<");
    manager.api.load(&PERSISTENT_VOLUME_CLAIMS, claim.text());
    let live = manager
        .objects
        .read_claim("ns", "data-web-0")
        .await
        .unwrap();
    manager.only_request();
    manager.answer(Verb::Update, "persistentvolumeclaims", "44");
    manager
        .objects
        .update_claim(&manager.set, live, Timing::Queued)
        .await
        .unwrap();
    let request = manager.only_request();
    assert_eq!((request.verb, &*request.name), (Verb::Update, "data-web-0"));
    assert_eq!(request.json(), claim.json());
    assert_eq!(
        manager.log.take(),
        ["ns/web web-uid persistentvolumeclaims 44"]
    );
}

#[tokio::test]
async fn get_claim_reads_the_cache() {
    let manager = manager();
    let claim = builders::claim(&manager.set, "data", 0);
    manager.api.load(&PERSISTENT_VOLUME_CLAIMS, claim.text());
    let found = manager.objects.get_claim("ns", "data-web-0").unwrap();
    assert!(found.is_none());
    manager.claims.add(claim.build());
    let found = manager.objects.get_claim("ns", "data-web-0").unwrap();
    assert_eq!(*found.unwrap(), claim.build());
    assert!(manager.api.actions().is_empty());
}

#[tokio::test]
async fn undecodable_response_fails_reads_but_not_writes() {
    let manager = manager();
    manager
        .api
        .react(None, "pods", |_| Some(Ok(r#"{"metadata":7}"#.to_owned())));
    let mut pod = NewPod::new(&manager.set, "web-1", Ordinal::from(0));
    pod.is_outdated = true;
    let created = manager.objects.create_pod(&manager.set, &pod).await;
    assert!(created.unwrap().is_none());
    assert!(manager.log.take().is_empty());
    let error = manager.objects.read_pod("ns", "web-0").await.unwrap_err();
    assert!(
        error.to_string().starts_with("read Pod ns/web-0: "),
        "{error}"
    );
}

#[tokio::test]
async fn failed_writes_are_returned_and_not_reported() {
    let manager = manager();
    let (objects, set) = (&manager.objects, &manager.set);
    for (verb, resource) in [
        (Verb::Create, "pods"),
        (Verb::Update, "pods"),
        (Verb::Create, "persistentvolumeclaims"),
        (Verb::Update, "persistentvolumeclaims"),
    ] {
        let rule = CallFault::new(verb, resource, 1, CallError::Forbidden);
        manager.api.fail(rule);
    }
    let pod = NewPod::new(set, "web-1", Ordinal::from(0));
    let claim = persistent_volume_claims(set, Ordinal::from(0))
        .next()
        .unwrap();
    let live_pod = builders::pod(set, 0).live();
    let live_claim = builders::claim(set, "data", 0).live();
    for result in [
        objects.create_pod(set, &pod).await.map(drop),
        objects.update_pod(set, live_pod).await,
        objects.create_claim(set, &claim).await,
        objects.update_claim(set, live_claim, Timing::Queued).await,
    ] {
        assert!(result.unwrap_err().is_forbidden());
    }
    assert!(manager.log.take().is_empty());
}
