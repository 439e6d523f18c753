//! Tests of sending events to the API, under paused time.

use jiff::Timestamp;
use serde_json::{Value, json};
use tower::Layer as _;

use super::*;
use crate::clock::{FakeClock, MonotonicClock as _, TokioClock};
use crate::fake::{Action, CapturedLog, FakeClientset, Verb};
use crate::fence::Fence;

fn set() -> ObjectReference {
    ObjectReference {
        kind: "StatefulSet".to_owned(),
        namespace: "ns".to_owned(),
        name: "web".to_owned(),
        uid: "u".to_owned(),
        api_version: "apps/v1".to_owned(),
        resource_version: "7".to_owned(),
    }
}

#[test]
fn uuid_is_random_version_4() {
    let mut rng = StdRng::seed_from_u64(7);
    let texts = [random_uuid(&mut rng), random_uuid(&mut rng)];
    assert_ne!(texts[0], texts[1]);
    for text in texts {
        let lengths: Vec<usize> = text.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{text}");
        assert_eq!(text.as_bytes()[14], b'4', "{text}");
        assert!(b"89ab".contains(&text.as_bytes()[19]), "{text}");
    }
}

fn clock() -> Arc<FakeClock> {
    Arc::new(FakeClock::new(
        Timestamp::from_second(1_700_000_000).unwrap(),
    ))
}

/// Records events, lets the sink send all of them, and returns the requests.
async fn run(
    fake: &FakeClientset,
    record: impl FnOnce(&BroadcastRecorder, &FakeClock),
) -> Vec<Action> {
    let clock = clock();
    let (recorder, sink) =
        BroadcastRecorder::new("statefulset-controller", Arc::<FakeClock>::clone(&clock));
    record(&recorder, &clock);
    drop(recorder);
    sink.run(fake.rest_client(), 1, CancellationToken::new())
        .await;
    fake.actions()
}

#[tokio::test(start_paused = true)]
async fn simultaneous_events_have_distinct_names() {
    let fake = FakeClientset::new();
    let actions = run(&fake, |recorder, clock| {
        for pod in 0..3 {
            let message = format!("create Pod web-{pod}");
            recorder.event(&set(), EventType::Normal, "SuccessfulCreate", &message);
        }
        // Clocks may also go back.
        clock.set(clock.now() - Duration::from_secs(1));
        recorder.event(&set(), EventType::Normal, "SuccessfulDelete", "delete Pod");
    })
    .await;
    let names = actions.iter().map(|action| {
        assert_eq!(action.verb, Verb::Create);
        action.json()["metadata"]["name"].to_string()
    });
    let names: std::collections::BTreeSet<String> = names.collect();
    assert_eq!(names.len(), 4, "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn event_is_posted_as_core_v1() {
    let fake = FakeClientset::new();
    let actions = run(&fake, |recorder, _| {
        recorder.event(
            &set(),
            EventType::Normal,
            "SuccessfulCreate",
            "create Pod web-0",
        );
    })
    .await;
    assert_eq!(actions.len(), 1);
    assert_eq!(
        (actions[0].verb, actions[0].namespace.as_str()),
        (Verb::Create, "ns")
    );
    assert_eq!(
        actions[0].json(),
        json!({
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": "web.17979cfe362a0000", "namespace": "ns"},
            "involvedObject": {
                "kind": "StatefulSet", "namespace": "ns", "name": "web", "uid": "u",
                "apiVersion": "apps/v1", "resourceVersion": "7",
            },
            "reason": "SuccessfulCreate",
            "message": "create Pod web-0",
            "source": {"component": "statefulset-controller"},
            "firstTimestamp": "2023-11-14T22:13:20Z",
            "lastTimestamp": "2023-11-14T22:13:20Z",
            "count": 1,
            "type": "Normal",
            "eventTime": null,
            "reportingComponent": "statefulset-controller",
            "reportingInstance": "",
        })
    );
}

#[tokio::test(start_paused = true)]
async fn repeated_event_is_patched_or_posted_if_gone() {
    let fake = FakeClientset::new();
    let actions = run(&fake, |recorder, _| {
        for _ in 0..2 {
            recorder.event(&set(), EventType::Normal, "R", "same");
        }
    })
    .await;
    let verbs: Vec<_> = actions.iter().map(|action| action.verb).collect();
    assert_eq!(verbs, [Verb::Create, Verb::Patch]);
    assert_eq!(actions[1].json()["count"], 2);
    assert_eq!(actions[1].name, actions[0].name);

    let gone = FakeClientset::new();
    gone.react(Verb::Patch, "events", |_| {
        Some(Err(Error::api(404, "NotFound", "gone")))
    });
    gone.react(Verb::Create, "events", |_| Some(Ok("{}".to_owned())));
    let actions = run(&gone, |recorder, _| {
        for _ in 0..2 {
            recorder.event(&set(), EventType::Normal, "R", "same");
        }
    })
    .await;
    let counts: Vec<_> = actions
        .iter()
        .map(|action| (action.verb, action.json()["count"].clone()))
        .collect();
    assert_eq!(
        counts,
        [
            (Verb::Create, Value::from(1)),
            (Verb::Patch, Value::from(2)),
            (Verb::Create, Value::from(2)),
        ]
    );
    assert_eq!(
        actions[2].json()["metadata"]["name"],
        actions[0].json()["metadata"]["name"]
    );
}

#[tokio::test(start_paused = true)]
async fn unreachable_server_is_tried_twelve_times() {
    let fake = FakeClientset::new();
    fake.react(Verb::Create, "events", |_| {
        Some(Err(Error::InvalidRequest("no route".to_owned())))
    });
    let start = tokio::time::Instant::now();
    let actions = run(&fake, |recorder, _| {
        recorder.event(&set(), EventType::Normal, "R", "m");
    })
    .await;
    assert_eq!(actions.len(), 12);
    let elapsed = start.elapsed();
    assert!(
        elapsed >= Duration::from_secs(100) && elapsed < Duration::from_secs(110),
        "{elapsed:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn rejected_event_is_not_retried() {
    let fake = FakeClientset::new();
    fake.react(Verb::Create, "events", |_| {
        Some(Err(Error::api(403, "Forbidden", "no")))
    });
    let actions = run(&fake, |recorder, _| {
        recorder.event(&set(), EventType::Normal, "R", "one");
        recorder.event(&set(), EventType::Normal, "R", "two");
    })
    .await;
    assert_eq!(actions.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn events_beyond_queue_are_dropped_and_counted() {
    let (recorder, _sink) = BroadcastRecorder::new("c", clock());
    for _ in 0..EVENT_QUEUE_CAPACITY + 3 {
        recorder.event(&set(), EventType::Normal, "R", "m");
    }
    assert_eq!(recorder.dropped(), 3);
}

#[tokio::test(start_paused = true)]
async fn invalid_event_name_becomes_uuid() {
    let fake = FakeClientset::new();
    let actions = run(&fake, |recorder, _| {
        let odd = ObjectReference {
            name: "Bad_Name".to_owned(),
            ..ObjectReference::default()
        };
        recorder.event(&odd, EventType::Warning, "R", "m");
    })
    .await;
    let name = actions[0].name.as_str();
    assert_eq!((name.len(), &name[14..15]), (36, "4"));
    assert_eq!(actions[0].namespace, "default");
}

#[tokio::test(start_paused = true)]
async fn repeated_event_patches_by_server_side_name() {
    let fake = FakeClientset::new();
    let actions = run(&fake, |recorder, _| {
        let odd = ObjectReference {
            name: "Bad_Name".to_owned(),
            ..ObjectReference::default()
        };
        for _ in 0..2 {
            recorder.event(&odd, EventType::Warning, "R", "same");
        }
    })
    .await;
    let asked: Vec<_> = actions
        .iter()
        .map(|action| (action.verb, action.name.as_str()))
        .collect();
    let name = actions[0].name.as_str();
    assert_eq!(asked, [(Verb::Create, name), (Verb::Patch, name)]);
}

#[tokio::test(start_paused = true)]
async fn event_waits_while_leader_renews_late() {
    let log = CapturedLog::at(tracing::Level::INFO);
    let fake = FakeClientset::new();
    let monotonic = TokioClock::new();
    let fence = Fence::new(Arc::new(monotonic));
    let client = RestClient::from_service(fence.layer(fake.clone()));
    let (recorder, sink) = BroadcastRecorder::new("statefulset-controller", clock());
    recorder.event(&set(), EventType::Normal, "R", "m");
    drop(recorder);
    let renewal = async {
        tokio::time::sleep(Duration::from_secs(11)).await;
        assert_eq!(fake.actions().len(), 0);
        fence.open_until(Duration::MAX);
    };
    tokio::join!(sink.run(client, 1, CancellationToken::new()), renewal);
    assert_eq!(fake.actions().len(), 1);
    // Sent immediately, at a random moment of the first 10 s, and 10 s later.
    let elapsed = monotonic.elapsed();
    assert!(elapsed >= Duration::from_secs(11) && elapsed < Duration::from_secs(20));
    let lines = log.take();
    assert!(
        !lines.iter().any(|line| line.starts_with("WARN")),
        "{lines:?}"
    );
}
