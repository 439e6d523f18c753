//! The production dependencies with an in-process API.

use std::sync::Arc;

use serde_json::json;
use statefulset_client::backoff::SeededJitter;
use statefulset_client::cache::indexer::CachedObject as _;
use statefulset_client::clock::FakeClock;
use statefulset_client::fake::{Action, FakeClientset, Verb};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::FakeRecorder;
use statefulset_client::resource::STATEFUL_SETS;
use statefulset_controller::{SetSyncer, SyncerParts};
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::stateful_set::StatefulSet;

use crate::fixture::{Fixture, key};

const SET: &str = r#"{"apiVersion":"apps/v1","kind":"StatefulSet",
    "metadata":{"name":"web","namespace":"ns","uid":"web-uid","resourceVersion":"1","generation":1},
    "spec":{"replicas":2,"serviceName":"web","selector":{"matchLabels":{"app":"web"}},
      "template":{"metadata":{"labels":{"app":"web"}},
        "spec":{"containers":[{"name":"c","image":"i","future":true}]}},
      "volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{}}],
      "updateStrategy":{"type":"RollingUpdate"}}}"#;

/// A write as `verb resource/subresource name`.
fn write(action: &Action) -> Option<String> {
    let Action {
        verb,
        resource,
        subresource,
        name,
        ..
    } = action;
    if matches!(verb, Verb::Get | Verb::List | Verb::Watch) {
        return None;
    }
    let slash = if subresource.is_empty() { "" } else { "/" };
    Some(format!("{verb} {resource}{slash}{subresource} {name}"))
}

#[tokio::test(start_paused = true)]
async fn new_set_gets_revision_first_pod_and_status() {
    let api = FakeClientset::new();
    api.load(&STATEFUL_SETS, SET);
    let fixture = Fixture::default();
    fixture.caches.sets.add(StatefulSet::decode(SET).unwrap());
    let recorder = Arc::new(FakeRecorder::new());
    let syncer = SetSyncer::new(SyncerParts::new(
        fixture.caches.clone(),
        &api.rest_client(),
        Arc::clone(&recorder) as _,
        Arc::new(FakeClock::default()),
        Arc::new(SeededJitter::new(1)),
        FeatureGates::default(),
    ));

    let synced = syncer.sync(&key()).await.unwrap();
    assert_eq!(synced.waiting.unwrap().to_string(), "pod web-0 was created");
    assert_eq!(synced.requeue_after, None);

    let writes: Vec<_> = api.actions().iter().filter_map(write).collect();
    let revision = writes[0]
        .strip_prefix("create controllerrevisions ")
        .unwrap();
    let expected = [
        format!("create controllerrevisions {revision}"),
        "create persistentvolumeclaims data-web-0".to_owned(),
        "create pods web-0".to_owned(),
        "update statefulsets/status web".to_owned(),
    ];
    assert_eq!(writes, expected);
    let action_on = |resource: &str| {
        let actions = api.actions();
        actions
            .into_iter()
            .find(|action| action.resource == resource && write(action).is_some())
    };
    let revision_body = action_on("controllerrevisions").unwrap().body;
    let recorded = ControllerRevision::decode(&revision_body).unwrap();
    assert!(
        recorded.data.to_str().contains(r#""future":true"#),
        "{}",
        recorded.data.to_str()
    );
    let pod = action_on("pods").unwrap().json();
    assert_eq!(
        pod["metadata"]["labels"]["controller-revision-hash"],
        revision
    );
    assert_eq!(pod["spec"]["containers"][0]["future"], true);
    let status = action_on("statefulsets").unwrap().json()["status"].clone();
    // The new pod counts once the cache shows it with a phase.
    let expected = json!({
        "observedGeneration": 1, "replicas": 0, "availableReplicas": 0, "collisionCount": 0,
        "currentRevision": revision, "updateRevision": revision,
    });
    assert_eq!(status, expected);
    let events = recorder.drain();
    let reasons: Vec<_> = events
        .iter()
        .map(|event| event.rsplit(' ').next().unwrap())
        .collect();
    assert_eq!(reasons, ["success", "successful"], "{events:?}");
}
