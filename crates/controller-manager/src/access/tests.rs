//! Tests of the wait for access, and of its log lines, under paused time.

use std::sync::Mutex;

use statefulset_client::fake::CapturedLog;
use tracing::Level;

use super::*;
use crate::scripted::{Said, client, client_of, failure};

/// Waits for a server that responds to each list from the script, which receives the whole seconds
/// since the start and the path. Returns the duration and the log lines.
async fn waited(
    script: impl Fn(u64, &str) -> Said + Send + Sync + 'static,
) -> (Duration, Vec<String>) {
    let log = CapturedLog::at(Level::INFO);
    let start = Instant::now();
    let client = client(move |path| script(start.elapsed().as_secs(), path));
    wait_for_access(&client, &ApiHealthLog::default(), Needs::default()).await;
    (start.elapsed(), log.take())
}

fn empty() -> (u16, String) {
    (200, "{}".to_owned())
}

fn forbidden(path: &str) -> (u16, String) {
    let plural = path.rsplit('/').next().unwrap();
    let message = format!("{plural} is forbidden: User \"jane\" cannot list resource \"{plural}\"");
    failure(403, "Forbidden", &message)
}

#[tokio::test(start_paused = true)]
async fn granted_access_is_not_logged() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let paths = Arc::clone(&asked);
    let (after, log) = waited(move |_, path| {
        paths.lock().unwrap().push(path.to_owned());
        Ok(empty())
    })
    .await;
    assert_eq!((after, log), (Duration::ZERO, Vec::new()));
    assert_eq!(
        *asked.lock().unwrap(),
        [
            "/apis/apps/v1/statefulsets",
            "/api/v1/pods",
            "/api/v1/persistentvolumeclaims",
            "/apis/apps/v1/controllerrevisions",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn lists_ask_for_one_object() {
    let client = client_of(|uri, _| match uri.query() {
        Some("limit=1") => Ok(empty()),
        other => panic!("{other:?}"),
    });
    wait_for_access(&client, &ApiHealthLog::default(), Needs::default()).await;
}

#[tokio::test(start_paused = true)]
async fn lists_of_a_shard_send_its_selector() {
    let shard: Shard = "0/2".parse().unwrap();
    let queries = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&queries);
    let client = client_of(move |uri, _| {
        let query = uri.query().unwrap().to_owned();
        let is_selected = query.contains("shardSelector=shardRange%28");
        seen.lock().unwrap().push(is_selected);
        Ok(if is_selected {
            failure(500, "", "invalid shard selector: no such field")
        } else {
            empty()
        })
    });
    let needs = Needs {
        shard: Some(shard),
        ..Needs::default()
    };
    wait_for_access(&client, &ApiHealthLog::default(), needs).await;
    // The first rejection ends the use of the selector.
    assert_eq!(*queries.lock().unwrap(), [true, false, false, false, false]);
}

#[tokio::test(start_paused = true)]
async fn missing_permissions_are_logged_once_until_granted() {
    let (after, log) = waited(|seconds, path| {
        let is_missing = path.ends_with("pods") || path.ends_with("controllerrevisions");
        Ok(if is_missing && seconds < 60 {
            forbidden(path)
        } else {
            empty()
        })
    })
    .await;
    assert_eq!(
        log,
        [
            "WARN permissions are missing, trying again; bind the ClusterRole \
             system:controller:statefulset-controller, or one with the same rules, to this user \
             missing=list pods, controllerrevisions.apps in all namespaces error=pods is \
             forbidden: User \"jane\" cannot list resource \"pods\"",
            "INFO the API server grants the required access after=65 s",
        ]
    );
    assert_eq!(after.as_secs(), 65);
}

#[tokio::test(start_paused = true)]
async fn each_change_of_missing_permissions_is_logged() {
    let (_, log) = waited(|seconds, path| match path {
        "/api/v1/pods" if seconds < 5 => Ok(forbidden(path)),
        "/apis/apps/v1/statefulsets" if seconds < 10 => Ok(forbidden(path)),
        _ => Ok(empty()),
    })
    .await;
    let missing: Vec<_> = log
        .iter()
        .filter_map(|line| Some(line.split_once("missing=")?.1.split_once(" error=")?.0))
        .collect();
    assert_eq!(
        missing,
        [
            "list statefulsets.apps, pods in all namespaces",
            "list statefulsets.apps in all namespaces",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn server_state_logs_outages() {
    let (after, log) = waited(|seconds, _| match seconds {
        0..20 => Err("connection refused"),
        20..40 => Ok(failure(401, "Unauthorized", "Unauthorized")),
        40..60 => Ok(failure(500, "InternalError", "etcd failed")),
        _ => Ok(empty()),
    })
    .await;
    assert_eq!(after.as_secs(), 65);
    let starts = [
        "WARN API server unreachable, trying again",
        "WARN API server rejects the credentials, trying again",
        "INFO API server accepts the credentials again",
        "WARN API server does not serve lists or watches, trying again",
        "INFO API server serves lists and watches again",
    ];
    assert_eq!(log.len(), starts.len(), "{log:#?}");
    for (line, start) in log.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn wait_continues_until_resources_are_served() {
    let (_, log) = waited(|seconds, path| match path {
        "/apis/apps/v1/statefulsets" if seconds < 20 => Ok(failure(
            404,
            "NotFound",
            "the server knows no such resource",
        )),
        _ => Ok(empty()),
    })
    .await;
    assert_eq!(
        log,
        [
            "WARN cannot list statefulsets.apps: the server knows no such resource, trying again",
            "INFO the API server grants the required access after=25 s",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn forbidden_lease_is_logged_once_until_granted() {
    let log = CapturedLog::at(Level::INFO);
    let begin = Instant::now();
    let message = "leases.coordination.k8s.io \"mine\" is forbidden: User \"jane\" cannot get";
    let client = client(move |path| {
        let is_lease = path.ends_with("/leases/mine");
        if is_lease && begin.elapsed().as_secs() < 20 {
            return Ok(failure(403, "Forbidden", message));
        }
        Ok(empty())
    });
    let lease = LeaseName::new("kube-system", "mine");
    let needs = Needs {
        lease: Some(&lease),
        ..Needs::default()
    };
    wait_for_access(&client, &ApiHealthLog::default(), needs).await;
    assert_eq!(begin.elapsed().as_secs(), 25);
    let log = log.take();
    assert_eq!(log.len(), 2, "{log:#?}");
    let start = "WARN permissions are missing, trying again; bind a Role to this user";
    assert!(log[0].starts_with(start), "{log:#?}");
    let end = "INFO the API server grants the required access after=25 s";
    assert_eq!(log[1], end);
}

#[tokio::test(start_paused = true)]
async fn slow_server_is_logged_once_until_it_responds() {
    let log = CapturedLog::at(Level::INFO);
    let begin = Instant::now();
    let slow = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        sleep(Duration::from_secs(30)).await;
        let body = kube::client::Body::from(b"{}".to_vec());
        Ok::<_, tower::BoxError>(http::Response::new(body))
    });
    let client = RestClient::from_service(slow);
    wait_for_access(&client, &ApiHealthLog::default(), Needs::default()).await;
    assert_eq!(begin.elapsed().as_secs(), 120);
    assert_eq!(
        log.take(),
        [
            "WARN the first requests to the API server take longer than 10 s, waiting; it may \
             answer late, a credential plugin may hang, or --kube-api-qps may be low",
            "INFO the API server grants the required access after=120 s",
        ]
    );
}
