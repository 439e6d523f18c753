//! Tests of list and watch against a scripted server, under paused time.

use std::pin::pin;
use std::sync::Mutex;

use crate::fake::TestObject;
use crate::resource::PODS;

use super::*;
use script::{Answer, ScriptedApi, Step, event, list, object, page};

mod paging;
mod protobuf;
mod relisting;
mod script;
mod set_aside;
mod sharding;

/// Records the events and checks that the cache already has them.
struct Listener {
    indexer: Arc<Indexer<TestObject>>,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Listener {
    fn note(&self, line: &str) {
        let version = self.indexer.last_sync_resource_version();
        self.heard
            .lock()
            .unwrap()
            .push(format!("{line} @{version}"));
    }

    fn cached(&self, object: &TestObject) -> Option<Arc<TestObject>> {
        self.indexer.get(object.namespace(), object.name())
    }
}

impl EventHandler<TestObject> for Listener {
    fn on_add(&self, object: &Arc<TestObject>, in_initial_list: bool) {
        assert!(Arc::ptr_eq(&self.cached(object).unwrap(), object));
        let initial = if in_initial_list { " initial" } else { "" };
        self.note(&format!(
            "+{}:{}{initial}",
            object.name(),
            object.resource_version()
        ));
    }

    fn on_update(&self, old: &Arc<TestObject>, new: &Arc<TestObject>) {
        assert!(Arc::ptr_eq(&self.cached(new).unwrap(), new));
        let (old, version) = (old.resource_version(), new.resource_version());
        self.note(&format!("*{}:{old}>{version}", new.name()));
    }

    fn on_delete(&self, object: &Arc<TestObject>, final_state_unknown: bool) {
        assert!(self.cached(object).is_none());
        let unknown = if final_state_unknown { " unknown" } else { "" };
        self.note(&format!(
            "-{}:{}{unknown}",
            object.name(),
            object.resource_version()
        ));
    }

    fn on_relisted(&self) {
        self.note("relisted");
    }
}

/// Runs an informer against a script for some seconds. Returns the handler's events and the
/// requests.
async fn run_with(
    config: InformerConfig,
    seconds: u64,
    script: Vec<Answer>,
) -> (Vec<String>, Vec<String>) {
    let api = ScriptedApi::new(script);
    let mut informer = Informer::<TestObject>::new(api.client(), PODS, &config);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = Listener {
        indexer: informer.indexer(),
        heard: Arc::clone(&heard),
    };
    informer.add_handler(Arc::new(listener));
    let token = CancellationToken::new();
    let stop = async {
        sleep(Duration::from_secs(seconds)).await;
        token.cancel();
    };
    tokio::join!(informer.run(token.clone()), stop);
    let heard = std::mem::take(&mut *heard.lock().unwrap());
    (heard, api.asked())
}

async fn run(seconds: u64, script: Vec<Answer>) -> (Vec<String>, Vec<String>) {
    run_with(InformerConfig::default(), seconds, script).await
}

#[tokio::test(start_paused = true)]
async fn initial_list_is_paged_and_consistent() {
    let (heard, asked) = run(
        5,
        vec![
            page("10", "next/1", &[object("b", "3")]),
            page("10", "", &[object("a", "7")]),
            Answer::Watch(vec![Step::Hang]),
        ],
    )
    .await;
    assert_eq!(heard, ["+a:7 initial @10", "+b:3 initial @10"]);
    assert_eq!(
        asked,
        [
            "/api/v1/pods?limit=500",
            "/api/v1/pods?limit=500&continue=next%2F1",
            "watch from 10",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn events_reach_the_cache_before_the_handlers() {
    let (heard, _) = run(
        5,
        vec![
            list("10", &[object("a", "7")]),
            Answer::Watch(vec![
                event("ADDED", &object("b", "11")),
                event("MODIFIED", &object("a", "12")),
                event("DELETED", &object("b", "13")),
                event("DELETED", &object("never seen", "14")),
                event("MODIFIED", &object("c", "15")),
                Step::Hang,
            ]),
        ],
    )
    .await;
    assert_eq!(
        heard,
        [
            "+a:7 initial @10",
            "+b:11 @11",
            "*a:7>12 @12",
            "-b:13 @13",
            "+c:15 @15",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn watch_resumes_from_last_version() {
    let (heard, asked) = run(
        60,
        vec![
            list("10", &[]),
            Answer::Watch(vec![event("ADDED", &object("a", "11")), Step::End]),
            Answer::Watch(vec![event("BOOKMARK", &object("", "20")), Step::End]),
            Answer::Watch(vec![Step::Wait(30), Step::End]),
            Answer::Watch(vec![Step::Hang]),
        ],
    )
    .await;
    assert_eq!(heard, ["+a:11 @11"]);
    assert_eq!(
        asked[1..],
        [
            "watch from 10",
            "watch from 11",
            "watch from 20",
            "watch from 20"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn bookmark_sets_cache_version() {
    let api = ScriptedApi::new(vec![
        list("10", &[]),
        Answer::Watch(vec![event("BOOKMARK", &object("", "33")), Step::Hang]),
    ]);
    let config = InformerConfig::default();
    let informer = Informer::<TestObject>::new(api.client(), PODS, &config);
    let (indexer, mut synced) = (informer.indexer(), informer.has_synced());
    assert!(!*synced.borrow());
    let token = CancellationToken::new();
    let look = async {
        synced.wait_for(|synced| *synced).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        token.cancel();
        indexer.last_sync_resource_version()
    };
    let ((), version) = tokio::join!(informer.run(token.clone()), look);
    assert_eq!(&*version, "33");
}

#[tokio::test(start_paused = true)]
async fn relist_reports_missed_changes() {
    for expiry in [
        Answer::Watch(vec![Step::Line(
            r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#.to_owned(),
        )]),
        Answer::Refuse(410, "Expired"),
    ] {
        let (heard, asked) = run(10, vec![
            list("10", &[object("gone", "1"), object("kept", "2"), object("changed", "3")]),
            expiry,
            list("50", &[object("changed", "40"), object("kept", "2"), object("new", "45")]),
            Answer::Watch(vec![Step::Hang]),
        ])
        .await;
        assert_eq!(heard[3..], [
            "*changed:3>40 @50",
            "*kept:2>2 @50",
            "+new:45 @50",
            "-gone:1 unknown @50",
            "relisted @50",
        ]);
        assert_eq!(asked.last().unwrap(), "watch from 50");
    }
}

#[tokio::test(start_paused = true)]
async fn older_list_moves_version_back() {
    let (heard, _) = run(
        10,
        vec![
            list("50", &[object("a", "40")]),
            Answer::Refuse(410, "Expired"),
            list("30", &[object("a", "20")]),
            Answer::Watch(vec![Step::Hang]),
        ],
    )
    .await;
    assert_eq!(heard, ["+a:40 initial @50", "*a:40>20 @30", "relisted @30"]);
}

#[tokio::test(start_paused = true)]
async fn refused_list_is_retried_with_backoff() {
    let start = Instant::now();
    let mut script = vec![Answer::Refuse(403, "Forbidden"); 4];
    script.push(list("10", &[object("a", "1")]));
    script.push(Answer::Watch(vec![Step::Hang]));
    let (heard, asked) = run(30, script).await;
    assert_eq!(heard, ["+a:1 initial @10"]);
    assert_eq!(asked.len(), 6);
    assert_eq!(start.elapsed(), Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn lost_connection_keeps_watch_version() {
    let (heard, asked) = run(
        600,
        vec![
            list("10", &[]),
            Answer::Reset,
            Answer::Watch(vec![event("ADDED", &object("a", "11")), Step::Break]),
            Answer::Refuse(429, "TooManyRequests"),
            Answer::Watch(vec![Step::Hang]),
            Answer::Watch(vec![event("ADDED", &object("b", "12")), Step::Hang]),
        ],
    )
    .await;
    assert_eq!(heard, ["+a:11 @11", "+b:12 @12"]);
    let watches = [
        "watch from 10",
        "watch from 10",
        "watch from 11",
        "watch from 11",
        "watch from 11",
    ];
    assert_eq!(asked[1..6], watches);
}

#[tokio::test(start_paused = true)]
async fn silent_watch_is_reopened_at_same_version() {
    let (heard, asked) = run(
        250,
        vec![
            list("10", &[]),
            Answer::Watch(vec![
                Step::Wait(100),
                event("ADDED", &object("a", "11")),
                Step::Hang,
            ]),
            Answer::Watch(vec![event("ADDED", &object("b", "12")), Step::Hang]),
        ],
    )
    .await;
    assert_eq!(heard, ["+a:11 @11", "+b:12 @12"]);
    assert_eq!(asked[1..], ["watch from 10", "watch from 11"]);
}

#[tokio::test(start_paused = true)]
async fn silent_watch_is_reopened_despite_resyncs() {
    let config = InformerConfig {
        resync_period: Some(Duration::from_secs(30)),
        ..InformerConfig::default()
    };
    let script = vec![
        list("10", &[object("a", "5")]),
        Answer::Watch(vec![Step::Hang]),
        Answer::Watch(vec![event("ADDED", &object("b", "12")), Step::Hang]),
    ];
    let (heard, asked) = run_with(config, 130, script).await;
    assert!(heard.contains(&"*a:5>5 @10".to_owned()), "{heard:?}");
    assert!(heard.contains(&"+b:12 @12".to_owned()), "{heard:?}");
    assert_eq!(asked[1..], ["watch from 10", "watch from 10"]);
}

#[tokio::test(start_paused = true)]
async fn refused_watch_causes_relist() {
    let (_, asked) = run(
        60,
        vec![
            list("10", &[]),
            Answer::Refuse(500, "InternalError"),
            list("11", &[]),
            Answer::Watch(vec![Step::Line("{broken".to_owned())]),
            list("12", &[]),
            Answer::Watch(vec![event("RENAMED", &object("a", "13"))]),
            list("13", &[]),
            Answer::Watch(vec![event("ADDED", r#"{"metadata":{}},"#)]),
            list("14", &[]),
            Answer::Watch(vec![Step::Hang]),
        ],
    )
    .await;
    let last = [
        "watch from 11",
        "/api/v1/pods?limit=500",
        "watch from 12",
        "/api/v1/pods?limit=500",
        "watch from 13",
        "/api/v1/pods?limit=500",
        "watch from 14",
    ];
    assert_eq!(asked[asked.len() - 7..], last);
}

#[tokio::test(start_paused = true)]
async fn short_watches_are_delayed() {
    let mut script = vec![list("10", &[])];
    script.extend(vec![Answer::Watch(vec![Step::End]); 100]);
    let (_, asked) = run(60, script).await;
    assert!(asked.len() < 10, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn resync_resends_all_objects_and_keeps_version() {
    let config = InformerConfig {
        resync_period: Some(Duration::from_secs(100)),
        ..InformerConfig::default()
    };
    let script = vec![
        list("10", &[object("a", "1"), object("b", "2")]),
        Answer::Watch(vec![Step::Hang]),
        Answer::Watch(vec![Step::Hang]),
    ];
    let (heard, _) = run_with(config.clone(), 201, script.clone()).await;
    assert_eq!(heard[2..], ["*a:1>1 @10", "*b:2>2 @10"]);
    let (heard, _) = run_with(config, 99, script).await;
    assert_eq!(heard.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn turn_ends_after_a_millisecond_or_64_objects() {
    let mut turn = Turn::default();
    let ends = async |turn: &mut Turn, begun| futures::poll!(pin!(turn.record(begun))).is_pending();
    let begun = Instant::now();
    tokio::time::advance(Turn::BUSY_MAX / 2).await;
    assert!(!ends(&mut turn, begun).await);
    assert!(ends(&mut turn, begun).await, "a millisecond of work");
    for object in 1..=64 {
        assert_eq!(ends(&mut turn, Instant::now()).await, object == 64);
    }
}
