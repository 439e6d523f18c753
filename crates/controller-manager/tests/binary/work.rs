//! Tests of the flags' effects on the controller's requests, observed at the API server.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::api::{Answer, FakeApi, Request};
use crate::program::{PATIENCE, Program, start};
use crate::{OFF, begin, end};

const SETS: &str = "/apis/apps/v1/statefulsets";

/// A set of two pods, both created in parallel, as stored by a server.
fn set(name: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"ns","uid":"{name}","resourceVersion":"1",
        "generation":1}},
        "spec":{{"replicas":2,"serviceName":"web","podManagementPolicy":"Parallel",
        "selector":{{"matchLabels":{{"app":"{name}"}}}},
        "template":{{"metadata":{{"labels":{{"app":"{name}"}}}},
        "spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}}}}}"#
    )
}

/// Lists these sets and nothing else; watches stay empty.
fn lists(request: &Request, sets: &[String]) -> Answer {
    if request.path == SETS && !request.is_watch() {
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        return Answer::list(&sets);
    }
    Answer::empty_list_or_watch(request)
}

fn started(api: &FakeApi, further: &[&str]) -> Program {
    let address = api.address();
    let own = [OFF, "--master", &address];
    start(&[&own, further].concat(), None)
}

fn next<T>(channel: &Receiver<T>, what: &str) -> T {
    let next = channel.recv_timeout(PATIENCE);
    next.unwrap_or_else(|_| panic!("still waiting for {what}"))
}

#[test]
fn concurrent_syncs_follow_the_flag() {
    // More than the default.
    const SYNCS: usize = 7;
    let sets: Vec<String> = (0..2 * SYNCS).map(|i| set(&format!("web-{i}"))).collect();
    let (begun, begins) = channel();
    let api = FakeApi::new(move |request| {
        if request.method == "POST" {
            // The response to each sync's request never arrives.
            begun.send(request.body.clone()).unwrap();
            return Answer::Silence;
        }
        lists(request, &sets)
    });
    let flag = format!("--concurrent-statefulset-syncs={SYNCS}");
    let mut program = started(&api, &[&flag]);
    program.wait_for_line(&format!("workers={SYNCS}"));
    let bodies: BTreeSet<String> = (0..SYNCS).map(|_| next(&begins, "a sync")).collect();
    assert_eq!(bodies.len(), SYNCS, "each sync has a different set");
}

#[test]
fn each_shard_begins_with_its_own_set() {
    // The hashes put `ns` into the first of two shards and `a` into the second.
    for (shard, namespace) in [("0/2", "ns"), ("1/2", "a")] {
        let sets = ["ns", "a"].map(|it| set("web").replace(r#""ns""#, &format!("{it:?}")));
        let (begun, begins) = channel();
        let api = FakeApi::new(move |request| {
            if request.method == "POST" {
                begun.send(request.path.clone()).unwrap();
                return Answer::Silence;
            }
            lists(request, &sets)
        });
        // One sync at a time, so that all shards would begin with the same set.
        let flags = [
            &format!("--shard={shard}"),
            "--concurrent-statefulset-syncs=1",
        ];
        let _program = started(&api, &flags);
        let first = next(&begins, "a sync");
        let expected = format!("/namespaces/{namespace}/");
        assert!(first.contains(&expected), "{shard}: {first}");
    }
}

#[test]
fn shadow_takes_no_lease_and_writes_nothing() {
    let (sent, requests) = channel();
    let api = FakeApi::new(move |request| {
        // The test may have ended.
        let _ = sent.send(format!("{} {}", request.method, request.path));
        lists(request, &[set("web")])
    });
    let mut program = start(&["--shadow", "--master", &api.address()], None);
    program.wait_for_line("shadow: no lease, no writes");
    program.wait_for_line("ready: caches are filled, comparing decisions");
    end(program);
    let requests: Vec<String> = requests.try_iter().collect();
    let reads = |line: &String| line.starts_with("GET ") && !line.contains("leases");
    assert!(requests.iter().all(reads), "{requests:#?}");
}

#[test]
fn objects_are_resynced_after_the_resync_period() {
    let odd = set("web").replace("matchLabels", "matchExpressions");
    let odd = odd.replace(
        r#"{"app":"web"}},"#,
        r#"[{"key":"app","operator":"None"}]},"#,
    );
    let api = FakeApi::new(move |request| lists(request, std::slice::from_ref(&odd)));
    let mut program = started(&api, &["--min-resync-period=200ms"]);
    // Every sync logs it, and none is retried by itself.
    for _ in 0..3 {
        program.wait_for_line("cannot convert the set's selector");
    }
}

#[test]
fn format_of_watched_pods_follows_the_flag() {
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf,application/json;q=0.9";
    const JSON: &str = "application/json";
    for (flag, of_pods) in [
        ("--v=0", PROTOBUF),
        ("--kube-api-content-type=application/json", JSON),
    ] {
        let (watched, watches) = channel();
        let api = FakeApi::new(move |request| {
            if request.is_watch() {
                // The test may have ended.
                let _ = watched.send((request.path.clone(), request.accept.clone()));
            }
            Answer::empty_list_or_watch(request)
        });
        let _program = started(&api, &[flag]);
        for _ in 0..4 {
            let (path, accept) = next(&watches, "a watch");
            let expected = if path == "/api/v1/pods" {
                of_pods
            } else {
                JSON
            };
            assert_eq!(accept, expected, "{path} with {flag}");
        }
    }
}

#[test]
fn request_rate_follows_the_flags() {
    let (listed, lists) = channel();
    let api = FakeApi::new(move |request| {
        if !request.is_watch() {
            // The test may have ended.
            let _ = listed.send(begin());
        }
        Answer::empty_list_or_watch(request)
    });
    let _program = started(&api, &["--kube-api-qps=10", "--kube-api-burst=1"]);
    // All come from the caches' client: four lists check the permissions, four fill the caches.
    let times: Vec<Instant> = (0..8).map(|_| next(&lists, "a list")).collect();
    let elapsed = times[7].duration_since(times[0]);
    // They are sent over 700 ms; the first may have been in flight longer than the last.
    assert!(elapsed >= Duration::from_millis(500), "{elapsed:?}");
}

#[test]
fn caches_fill_after_the_start_interval() {
    let (watched, watches) = channel();
    let api = FakeApi::new(move |request| {
        if request.is_watch() {
            let _ = watched.send(());
        }
        Answer::empty_list_or_watch(request)
    });
    let begin = begin();
    let _program = started(&api, &["--controller-start-interval=1500ms"]);
    next(&watches, "a watch");
    let elapsed = begin.elapsed();
    assert!(elapsed >= Duration::from_millis(1500), "{elapsed:?}");
}

#[test]
fn unfinished_sync_does_not_block_shutdown() {
    let (asked, asks) = channel();
    let sets = [set("web")];
    let api = FakeApi::new(move |request| {
        if request.method == "POST" {
            asked.send(()).unwrap();
            return Answer::Silence;
        }
        lists(request, &sets)
    });
    let program = started(&api, &["--controller-shutdown-timeout=300ms"]);
    next(&asks, "the sync");
    program.signal("TERM");
    let finished = program.wait();
    let last = finished.stderr.lines().last();
    assert_eq!(last, Some("Error: controller shutdown timeout reached"));
    assert_eq!(finished.code, Some(1));
}

#[test]
fn queued_events_are_sent_on_shutdown() {
    let (recorded, records) = channel();
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let (closed, closes) = channel();
    let sets = [set("web")];
    let api = FakeApi::new(move |request| {
        if request.path.ends_with("/events") {
            recorded.send(()).unwrap();
            // The server delays the first event, which blocks the second.
            let _ = released.lock().unwrap().recv_timeout(PATIENCE);
        }
        if request.method == "POST" || request.method == "PUT" {
            return Answer::stored(request);
        }
        if request.is_watch() {
            return Answer::Watch(closed.clone());
        }
        lists(request, &sets)
    });
    let mut program = started(&api, &[]);
    program.wait_for_line("ready: caches are filled");
    next(&records, "the first event");
    program.signal("TERM");
    // The controller has stopped once its watches are closed.
    next(&closes, "the end of a watch");
    drop(release);
    next(&records, "the second event");
    let finished = program.wait();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
}
