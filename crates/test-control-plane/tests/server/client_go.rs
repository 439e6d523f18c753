//! Requests as Go clients send them: controllers with informers and leases, and kubectl.

use http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Plane, claim, exchange, pod};

/// `Accept` headers of JSON clients and of clients that prefer protobuf.
const ACCEPTS: [&str; 3] = [
    "application/json",
    "application/json, */*",
    "application/vnd.kubernetes.protobuf,application/json",
];

/// kubectl's `Accept` header for printed output.
const PRINTED: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,\
                       application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";

const AGENT: &str = "kube-controller-manager/v1.36.2 (linux/amd64) kubernetes/9d1f0b3";

async fn ask(plane: &Plane, method: Method, path: &str, accept: &str, body: &Value) -> Answer {
    let headers = [
        ("Accept", accept),
        ("Accept-Encoding", "gzip"),
        ("Content-Type", "application/json"),
        ("User-Agent", AGENT),
    ];
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    exchange(plane.0.server(), method, path, &headers, body).await
}

async fn read(plane: &Plane, path: &str, accept: &str) -> Answer {
    ask(plane, Method::GET, path, accept, &Value::Null).await
}

fn events(answer: &Answer) -> Vec<Value> {
    let text = answer.text();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn leader_acquires_and_renews_its_lease() {
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    for accept in ACCEPTS {
        let plane = Plane::started().await;
        let path = format!("{leases}/kube-controller-manager?timeout=5s");
        let missing = read(&plane, &path, accept).await;
        assert_eq!(
            (missing.code, missing.json()["reason"].as_str()),
            (404, Some("NotFound"))
        );
        let lease = json!({
            "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"name": "kube-controller-manager", "namespace": "kube-system"},
            "spec": {
                "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 0,
                "acquireTime": "2026-01-01T00:00:00.000000Z",
                "renewTime": "2026-01-01T00:00:00.000000Z",
            },
        });
        let path = format!("{leases}?timeout=5s");
        let created = ask(&plane, Method::POST, &path, accept, &lease).await;
        assert_eq!(created.code, 201);
        let mut lease = created.json();
        assert_eq!(lease["spec"]["acquireTime"], "2026-01-01T00:00:00.000000Z");
        let stale = lease.clone();
        lease["spec"]["renewTime"] = json!("2026-01-01T00:00:02.000000Z");
        let path = format!("{leases}/kube-controller-manager?timeout=5s");
        assert_eq!(
            ask(&plane, Method::PUT, &path, accept, &lease).await.code,
            200
        );
        let lost = ask(&plane, Method::PUT, &path, accept, &stale).await;
        assert_eq!(
            (lost.code, lost.json()["reason"].as_str()),
            (409, Some("Conflict"))
        );
        plane.stop().await;
    }
}

#[tokio::test]
async fn controller_checks_health_and_records_events() {
    let plane = Plane::started().await;
    let answer = read(&plane, "/healthz?timeout=10s", ACCEPTS[0]).await;
    assert_eq!((answer.code, answer.text().as_str()), (200, "ok"));
    let event = json!({
        "kind": "Event", "apiVersion": "v1",
        "metadata": {"name": "web.1", "namespace": "default", "creationTimestamp": null},
        "involvedObject": {
            "kind": "StatefulSet", "namespace": "default", "name": "web", "uid": "u",
            "apiVersion": "apps/v1", "resourceVersion": "5",
        },
        "reason": "SuccessfulCreate", "message": "create Pod web-0 successful",
        "source": {"component": "statefulset-controller"},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1, "type": "Normal", "eventTime": null,
        "reportingComponent": "statefulset-controller", "reportingInstance": "",
    });
    let path = "/api/v1/namespaces/default/events";
    let created = ask(&plane, Method::POST, path, ACCEPTS[0], &event).await;
    assert_eq!(created.code, 201, "{}", created.text());
    // The next identical event is a patch of the count.
    let patch = json!({"count": 2, "lastTimestamp": "2026-01-01T00:00:05Z"});
    let headers = [("Content-Type", "application/strategic-merge-patch+json")];
    let one = format!("{path}/web.1");
    let body = patch.to_string();
    let patched = exchange(plane.0.server(), Method::PATCH, &one, &headers, body).await;
    assert_eq!((patched.code, &patched.json()["count"]), (200, &json!(2)));
    plane.stop().await;
}

/// Every informer of a stateful set controller begins with one watch that lists, too.
#[tokio::test(start_paused = true)]
async fn informers_list_by_watching() {
    let plane = Plane::started().await;
    plane
        .create("/api/v1/namespaces/default/pods", &pod("p"))
        .await;
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    plane.create(claims, &claim("c")).await;
    for (path, kind, version, count) in [
        ("/apis/apps/v1/statefulsets", "StatefulSet", "apps/v1", 0),
        (
            "/apis/apps/v1/controllerrevisions",
            "ControllerRevision",
            "apps/v1",
            0,
        ),
        ("/api/v1/pods", "Pod", "v1", 1),
        (
            "/api/v1/persistentvolumeclaims",
            "PersistentVolumeClaim",
            "v1",
            1,
        ),
    ] {
        for accept in ACCEPTS {
            let first = format!(
                "{path}?allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan\
                 &sendInitialEvents=true&timeout=7m1s&timeoutSeconds=1&watch=true"
            );
            let answer = read(&plane, &first, accept).await;
            assert_eq!(answer.code, 200, "{path}");
            assert_eq!(answer.header("content-type"), "application/json");
            assert_eq!(answer.header("content-encoding"), "");
            let found = events(&answer);
            let (bookmark, added) = found.split_last().unwrap();
            assert_eq!(added.len(), count, "{path}");
            assert_eq!(bookmark["type"], "BOOKMARK");
            let object = &bookmark["object"];
            assert_eq!(
                (&object["kind"], &object["apiVersion"]),
                (&json!(kind), &json!(version))
            );
            let metadata = &object["metadata"];
            assert_eq!(metadata["annotations"]["k8s.io/initial-events-end"], "true");
            let revision = metadata["resourceVersion"].as_str().unwrap();
            let next = format!(
                "{path}?allowWatchBookmarks=true&resourceVersion={revision}&timeoutSeconds=4\
                 &watch=true"
            );
            let later = events(&read(&plane, &next, accept).await);
            assert!(
                later.iter().all(|event| event["type"] == "BOOKMARK"),
                "{later:?}"
            );
            assert!(later.iter().all(|event| event["object"]["kind"] == kind));
        }
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn kubectl_prints_and_waits() {
    let plane = Plane::started().await;
    let pods = "/api/v1/namespaces/default/pods";
    plane.create(pods, &pod("a")).await;
    plane.create(pods, &pod("b")).await;
    let table = read(&plane, &format!("{pods}?limit=500"), PRINTED)
        .await
        .json();
    assert_eq!(table["rows"].as_array().unwrap().len(), 2);
    let revision = table["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{pods}?resourceVersion={revision}&watch=true&timeoutSeconds=1");
    assert!(events(&read(&plane, &path, PRINTED).await).is_empty());
    // kubectl waits for one object with a filtered list and watch.
    let selected = "fieldSelector=metadata.name%3Da";
    let path = format!("{pods}?{selected}&limit=500&resourceVersion=0");
    let list = read(&plane, &path, ACCEPTS[0]).await.json();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!(
        "{pods}?allowWatchBookmarks=true&{selected}&resourceVersion={revision}\
         &timeoutSeconds=1&watch=true"
    );
    let (answer, ()) = tokio::join!(read(&plane, &path, ACCEPTS[0]), async {
        for name in ["a", "b"] {
            let path = format!("{pods}/{name}");
            plane.call(Method::DELETE, &path, &Value::Null).await;
        }
    });
    let found = events(&answer);
    let deleted: Vec<&Value> = found
        .iter()
        .filter(|event| event["type"] == "DELETED")
        .collect();
    assert_eq!(deleted.len(), 1);
    assert_eq!(deleted[0]["object"]["metadata"]["name"], "a");
    plane.stop().await;
}
