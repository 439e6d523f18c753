//! Body of a status write, and its retries.

use serde_json::{Value, json};
use statefulset_client::backoff::NoJitter;
use statefulset_client::cache::indexer::CachedObject as _;
use statefulset_client::fake::{Action, CallError, CallFault, FakeClientset, Verb};
use statefulset_client::resource::STATEFUL_SETS;
use statefulset_controller_util::consistency::ConsistencyStore;
use statefulset_controller_util::testing::WriteLog;
use statefulset_controller_util::testing::builders::{self, Builder};
use tokio::time::Instant;

use super::*;

struct ApiUpdater {
    api: FakeClientset,
    sets: Arc<Indexer<StatefulSet>>,
    log: Arc<WriteLog>,
    updater: RealStatusUpdater,
}

fn api_updater() -> ApiUpdater {
    let api = FakeClientset::new();
    let sets = Arc::new(Indexer::new());
    let log = Arc::new(WriteLog::default());
    let consistency: Arc<dyn ConsistencyStore> = Arc::<WriteLog>::clone(&log);
    let client = TrackedClient::new(api.rest_client(), consistency);
    let cache = Arc::clone(&sets);
    ApiUpdater {
        updater: RealStatusUpdater::new(client, cache, Arc::new(NoJitter)),
        api,
        sets,
        log,
    }
}

fn web() -> Builder<StatefulSet> {
    builders::set("web")
        .with("metadata.annotations.note", "<")
        .with("metadata.finalizers", json!(["example.com/f"]))
        .with("metadata.future", json!({"b": 1, "a": 2}))
        .with("metadata.managedFields", json!([{"manager": "x"}]))
}

fn status() -> StatefulSetStatus {
    StatefulSetStatus {
        replicas: 2,
        current_revision: "web-1".into(),
        collision_count: Some(0),
        ..StatefulSetStatus::default()
    }
}

async fn write(updater: &ApiUpdater, set: &Builder<StatefulSet>) -> Result<(), Error> {
    let updater = &updater.updater;
    let set = StatefulSet::decode(&sent(set)).unwrap();
    updater.update_stateful_set_status(&set, &status()).await
}

/// Text of a set with an unknown field and a number that our encoder would write differently.
fn sent(set: &Builder<StatefulSet>) -> String {
    set.text()
        .replacen(r#""spec":{"#, r#""spec":{"future":1.00,"#, 1)
}

fn fail(updater: &ApiUpdater, times: u32, error: CallError) {
    let rule = CallFault::new(Verb::Update, "statefulsets", times, error);
    updater.api.fail(rule.on("status"));
}

#[tokio::test]
async fn body_is_the_whole_set_with_the_new_status() {
    let updater = api_updater();
    updater.api.load(&STATEFUL_SETS, web().text());
    write(&updater, &web()).await.unwrap();
    let actions = updater.api.actions();
    assert_eq!(actions.len(), 1);
    let action = &actions[0];
    assert_eq!(
        (
            action.verb,
            &*action.subresource,
            &*action.name,
            &*action.namespace
        ),
        (Verb::Update, "status", "web", "ns")
    );
    let mut expected = web().without("metadata.managedFields").json();
    expected["spec"]["future"] = json!(1.0);
    expected["status"] = json!({"replicas": 2, "currentRevision": "web-1", "collisionCount": 0, "availableReplicas": 0});
    assert_eq!(action.json(), expected);
    assert!(action.body.contains(r#""future":1.00"#), "{}", action.body);
}

#[tokio::test]
async fn next_sync_waits_for_the_status_write() {
    let updater = api_updater();
    updater.api.react(Verb::Update, "statefulsets", |_| {
        Some(Ok(web().with("metadata.resourceVersion", "77").text()))
    });
    write(&updater, &web()).await.unwrap();
    assert_eq!(updater.log.take(), ["ns/web web-uid statefulsets.apps 77"]);
}

#[tokio::test(start_paused = true)]
async fn conflict_is_tried_five_times_with_the_cached_set() {
    for (conflicts, succeeds) in [(4, true), (5, false)] {
        let updater = api_updater();
        updater.api.load(&STATEFUL_SETS, web().text());
        fail(&updater, conflicts, CallError::Conflict);
        let cached = web()
            .with("metadata.resourceVersion", "8")
            .replicas(7)
            .with("metadata.labels.new", "1")
            .with("status.conditions", json!([{"type": "X"}]))
            .with("status.replicas", 9);
        updater.sets.add(cached.build());
        let start = Instant::now();
        let result = write(&updater, &web()).await;
        assert_eq!(start.elapsed().as_millis(), 40);
        assert_eq!(result.is_ok(), succeeds);
        assert!(succeeds || result.unwrap_err().is_conflict());
        let bodies: Vec<Value> = updater.api.actions().iter().map(Action::json).collect();
        assert_eq!(bodies.len(), 5);
        assert_eq!(bodies[0]["metadata"]["resourceVersion"], "1");
        assert_eq!(bodies[0]["spec"]["replicas"], 1);
        for body in &bodies[1..] {
            assert_eq!(body["metadata"]["resourceVersion"], "8");
            assert_eq!(body["spec"]["replicas"], 7, "the spec comes from the cache");
            assert_eq!(body["metadata"]["labels"]["new"], "1");
            assert_eq!(
                body["status"]["replicas"], 2,
                "the status is the computed one"
            );
            assert_eq!(body["status"]["conditions"], json!([{"type": "X"}]));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn recreated_set_stops_the_retries() {
    let updater = api_updater();
    updater.api.load(&STATEFUL_SETS, web().text());
    fail(&updater, 1, CallError::Conflict);
    updater.sets.add(web().uid("new").build());
    assert!(write(&updater, &web()).await.unwrap_err().is_conflict());
    assert_eq!(updater.api.actions().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn set_missing_in_the_cache_is_retried_unchanged() {
    let updater = api_updater();
    updater.api.load(&STATEFUL_SETS, web().text());
    fail(&updater, 1, CallError::Conflict);
    write(&updater, &web()).await.unwrap();
    let actions = updater.api.actions();
    assert_eq!(actions.len(), 2);
    assert_eq!(actions[0].body, actions[1].body);
}

#[tokio::test]
async fn other_status_errors_are_not_retried() {
    for failure in [
        CallError::Invalid,
        CallError::InternalError,
        CallError::NotFound,
    ] {
        let updater = api_updater();
        fail(&updater, 1, failure);
        write(&updater, &web()).await.unwrap_err();
        assert_eq!(updater.api.actions().len(), 1);
        assert!(updater.log.take().is_empty());
    }
}

#[tokio::test]
async fn undecodable_response_counts_as_success() {
    let updater = api_updater();
    updater
        .api
        .react(Verb::Update, "statefulsets", |_| Some(Ok("{}".to_owned())));
    write(&updater, &web()).await.unwrap();
    assert!(updater.log.take().is_empty());
}
