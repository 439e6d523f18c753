//! Tests of requests and responses against a scripted service.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use http::header;
use http_body::Frame;
use http_body_util::StreamBody;
use tower::service_fn;
use tracing::Level;

use super::*;
use crate::fake::CapturedLog;
use crate::resource::{CONTROLLER_REVISIONS, PODS, STATEFUL_SETS};

/// Returns a client whose service always sends one response, and records `METHOD target
/// content-type`.
fn client(code: u16, body: &'static str) -> (RestClient, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let service = service_fn(move |request: Request<Body>| {
        let content_type = request.headers().get(header::CONTENT_TYPE);
        let content_type = content_type.map_or("", |value| value.to_str().unwrap());
        log.lock().unwrap().push(format!(
            "{} {} {content_type}",
            request.method(),
            request.uri()
        ));
        async move {
            let response = Response::builder().status(code);
            response
                .body(Body::from(body.as_bytes().to_vec()))
                .map_err(BoxError::from)
        }
    });
    (RestClient::new(kube::Client::new(service, "default")), seen)
}

#[tokio::test]
async fn requests_have_api_paths_and_content_types() {
    let (client, seen) = client(200, "{}");
    let body = || "{}".to_owned();
    client.get(&PODS, "ns", "web-0").await.unwrap();
    client.create(&PODS, "ns", body()).await.unwrap();
    client
        .replace_status(&STATEFUL_SETS, "ns", "web", body())
        .await
        .unwrap();
    client
        .patch(
            &CONTROLLER_REVISIONS,
            "ns",
            "r",
            PatchType::Strategic,
            body(),
        )
        .await
        .unwrap();
    client.delete(&PODS, "ns", "web-0", body()).await.unwrap();
    let list = ListOptions {
        limit: 500,
        continue_token: "a/b=".to_owned(),
        ..ListOptions::default()
    };
    client.list(&PODS, &list).await.unwrap();
    let watch = WatchOptions {
        resource_version: "7".to_owned(),
        timeout_seconds: 290,
        allow_bookmarks: true,
        ..WatchOptions::default()
    };
    client.watch(&PODS, &watch).await.unwrap();
    assert_eq!(
        *seen.lock().unwrap(),
        [
            "GET /api/v1/namespaces/ns/pods/web-0 ",
            "POST /api/v1/namespaces/ns/pods application/json",
            "PUT /apis/apps/v1/namespaces/ns/statefulsets/web/status application/json",
            "PATCH /apis/apps/v1/namespaces/ns/controllerrevisions/r application/strategic-merge-patch+json",
            "DELETE /api/v1/namespaces/ns/pods/web-0 application/json",
            "GET /api/v1/pods?limit=500&continue=a%2Fb%3D ",
            "GET /api/v1/pods?watch=true&resourceVersion=7&timeoutSeconds=290&allowWatchBookmarks=true ",
        ]
    );
}

#[tokio::test]
async fn invalid_path_segment_is_rejected_before_sending() {
    let (client, seen) = client(200, "{}");
    let err = client.get(&PODS, "ns", "").await.unwrap_err();
    assert_eq!(err.to_string(), "resource name may not be empty");
    for name in ["a/b", "..", "a?x=1"] {
        assert!(client.get(&PODS, "ns", name).await.is_err());
    }
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn error_response_is_classified() {
    let (client, _) = client(
        404,
        r#"{"kind":"Status","status":"Failure","reason":"NotFound","message":"pods \"x\" not found","code":404}"#,
    );
    let err = client.get(&PODS, "ns", "x").await.unwrap_err();
    assert!(err.is_not_found());
    assert_eq!(err.to_string(), "pods \"x\" not found");
    assert!(
        client
            .watch(&PODS, &WatchOptions::default())
            .await
            .err()
            .unwrap()
            .is_not_found()
    );
}

#[tokio::test(start_paused = true)]
async fn request_without_response_times_out() {
    let service =
        service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, BoxError>>());
    let client = crate::config::layered(service, &crate::config::ClientOptions::default());
    let err = client.get(&PODS, "ns", "x").await.unwrap_err();
    assert_eq!(
        err.to_string(),
        "GET /api/v1/namespaces/ns/pods/x: no response from the API server within 90 s"
    );
    assert!(matches!(err, Error::Timeout { .. }));
}

fn json(object: &WatchObject) -> &str {
    match object {
        WatchObject::Json(object) => object.text(),
        WatchObject::Protobuf(message) => panic!("protobuf: {message:?}"),
    }
}

#[tokio::test]
async fn watch_events_keep_object_text() {
    let (client, _) = client(
        200,
        concat!(
            r#"{"type":"ADDED","object":{"b":1, "a":2}}"#,
            "\n",
            r#"{"object":{"x":1},"type":"MODIFIED"}"#,
            "\n\n",
            r#"{"type":"DELETED","object":{}}"#,
            "\n",
            r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}"#,
            "\n",
            r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"old"}}"#,
            "\n",
            r#"{"type":"ADDED","obj"#,
        ),
    );
    let stream = client.watch(&PODS, &WatchOptions::default()).await.unwrap();
    let events: Vec<_> = stream.map(Result::unwrap).collect().await;
    let texts: Vec<_> = events
        .iter()
        .map(|event| match event {
            WatchEvent::Added(object) => format!("+{}", json(object)),
            WatchEvent::Modified(object) => format!("*{}", json(object)),
            WatchEvent::Deleted(object) => format!("-{}", json(object)),
            WatchEvent::Bookmark(object) => format!("={}", json(object)),
            WatchEvent::Error(status) => format!("!{}", status.code),
        })
        .collect();
    assert_eq!(
        texts,
        [
            r#"+{"b":1, "a":2}"#,
            r#"*{"x":1}"#,
            "-{}",
            r#"={"metadata":{"resourceVersion":"9"}}"#,
            "!410",
        ]
    );
}

#[tokio::test]
async fn watch_event_length_is_limited() {
    let object = "x".repeat(2 * 1024 * 1024);
    let event = format!(r#"{{"type":"ADDED","object":"{object}"}}"#) + "\n";
    let (client, _) = client(200, event.leak());
    let stream = client.watch(&PODS, &WatchOptions::default()).await.unwrap();
    let events: Vec<_> = stream.collect().await;
    assert!(matches!(&*events, [Ok(WatchEvent::Added(_))]));

    // Sends frames of a megabyte without a line break until the client stops reading.
    let read = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&read);
    let service = service_fn(move |_: Request<Body>| {
        let counter = Arc::clone(&counter);
        let frames = futures::stream::repeat_with(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok::<_, BoxError>(Frame::data(Bytes::from(vec![b' '; 1024 * 1024])))
        });
        std::future::ready(Ok::<_, BoxError>(Response::new(StreamBody::new(frames))))
    });
    let client = RestClient::new(kube::Client::new(service, "default"));
    let stream = client.watch(&PODS, &WatchOptions::default()).await.unwrap();
    let events: Vec<_> = stream.collect().await;
    let [Err(error)] = &*events else {
        panic!("{} events", events.len());
    };
    assert!(
        error.to_string().contains("longer than 67108864 bytes"),
        "{error}"
    );
    assert_eq!(read.load(Ordering::Relaxed), 65);
}

#[tokio::test]
async fn broken_watch_event_ends_stream_with_error() {
    let (client, _) = client(200, "{]\n{\"type\":\"ADDED\",\"object\":{}}\n");
    let stream = client.watch(&PODS, &WatchOptions::default()).await.unwrap();
    let events: Vec<_> = stream.collect().await;
    assert_eq!(events.len(), 1);
    assert!(events[0].is_err());
}

#[tokio::test(start_paused = true)]
async fn pending_list_is_logged_after_a_minute() {
    let log = CapturedLog::at(Level::INFO);
    let client = RestClient::from_service(service_fn(|_| async {
        tokio::time::sleep(Duration::from_secs(90)).await;
        Ok(Response::new(Body::from(b"{}".to_vec())))
    }));
    client.list(&PODS, &ListOptions::default()).await.unwrap();
    assert_eq!(
        log.take(),
        [
            "WARN API server does not serve lists or watches, trying again; see its log request=list pods \
             in all namespaces error=no response, or only Retry-After responses, for 60 s",
            "INFO API server serves lists and watches again after=30 s",
        ]
    );
    // The write's caller logs its result.
    client.create(&PODS, "ns", "{}".to_owned()).await.unwrap();
    assert_eq!(log.take(), [""; 0]);
}

#[tokio::test]
async fn rejected_shard_selector_is_dropped_and_logged_once() {
    let log = CapturedLog::at(Level::INFO);
    let requests = Arc::new(AtomicUsize::new(0));
    let selectors = Arc::new(AtomicUsize::new(0));
    let counts = (Arc::clone(&requests), Arc::clone(&selectors));
    let client = RestClient::from_service(service_fn(move |request: Request<Body>| {
        counts.0.fetch_add(1, Ordering::Relaxed);
        let is_selected = request.uri().query().unwrap().contains("shardSelector=");
        counts.1.fetch_add(is_selected.into(), Ordering::Relaxed);
        let status = r#"{"kind":"Status","status":"Failure","code":500,"message":"invalid shard selector: no"}"#;
        let (code, body) = if is_selected {
            (500, status)
        } else {
            (200, "{}")
        };
        let response = Response::builder().status(code);
        std::future::ready(
            response
                .body(Body::from(body.as_bytes().to_vec()))
                .map_err(BoxError::from),
        )
    }));
    let list = ListOptions {
        limit: 1,
        shard_selector: "x".to_owned(),
        ..ListOptions::default()
    };
    let watch = WatchOptions {
        shard_selector: "x".to_owned(),
        ..WatchOptions::default()
    };
    client.list(&PODS, &list).await.unwrap();
    client.watch(&PODS, &watch).await.unwrap();
    client.clone().list(&STATEFUL_SETS, &list).await.unwrap();
    let counts = (
        requests.load(Ordering::Relaxed),
        selectors.load(Ordering::Relaxed),
    );
    assert_eq!(counts, (4, 1));
    assert_eq!(
        log.take(),
        [
            "WARN API server rejects the shard selector, reading the objects of all shards and \
             dropping the others; sets are served as before error=invalid shard selector: no"
        ]
    );
}
