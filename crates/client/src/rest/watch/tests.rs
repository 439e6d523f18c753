//! Tests of protobuf watches.

use std::sync::{Arc, Mutex};

use futures::{StreamExt as _, stream};
use http::Request;
use http_body::Frame;
use http_body_util::StreamBody;
use kube::client::Body;
use tower::{BoxError, service_fn};

use super::*;
use crate::fake::message::{event, field};
use crate::resource::PODS;
use crate::rest::{RestClient, WatchOptions};

/// Watches pods. The server sends these pieces. Returns the events and the `Accept` header.
async fn watch(pieces: Vec<Vec<u8>>) -> (Vec<Result<WatchEvent, Error>>, String) {
    let accepted = Arc::new(Mutex::new(String::new()));
    let seen = Arc::clone(&accepted);
    let service = service_fn(move |request: Request<Body>| {
        let accept = request.headers()[header::ACCEPT].to_str().unwrap();
        accept.clone_into(&mut seen.lock().unwrap());
        let pieces = pieces.clone().into_iter();
        let frames = pieces.map(|piece| Ok::<_, BoxError>(Frame::data(Bytes::from(piece))));
        let response = Response::builder()
            .header(
                header::CONTENT_TYPE,
                "application/vnd.kubernetes.protobuf;stream=watch",
            )
            .body(StreamBody::new(stream::iter(frames)));
        std::future::ready(response.map_err(BoxError::from))
    });
    let options = WatchOptions {
        media_type: MediaType::Protobuf,
        ..WatchOptions::default()
    };
    let client = RestClient::new(kube::Client::new(service, "default"));
    let stream = client.watch(&PODS, &options).await.unwrap();
    let events = stream.collect().await;
    let accepted = accepted.lock().unwrap().clone();
    (events, accepted)
}

#[tokio::test]
async fn protobuf_events_arrive_in_any_pieces() {
    let details = [field(1, "n"), field(4, field(1, "c")), vec![5 << 3, 7]].concat();
    let texts = [field(2, "Failure"), field(3, "old"), field(4, "Expired")].concat();
    let status = [texts, field(5, details), vec![6 << 3, 0x9a, 0x03]].concat();
    let bytes = [
        event("ADDED", "Pod", b"one"),
        event("MODIFIED", "Pod", b""),
        event("DELETED", "Pod", b"three"),
        event("BOOKMARK", "Pod", b"four"),
        event("ERROR", "Status", &status),
    ]
    .concat();
    for length in [1, 3, 7, bytes.len()] {
        let (events, accepted) = watch(bytes.chunks(length).map(<[u8]>::to_vec).collect()).await;
        assert_eq!(
            accepted,
            "application/vnd.kubernetes.protobuf,application/json;q=0.9"
        );
        let texts: Vec<String> = events
            .into_iter()
            .map(|event| match event.unwrap() {
                WatchEvent::Added(WatchObject::Protobuf(message)) => format!("+{message:?}"),
                WatchEvent::Modified(WatchObject::Protobuf(message)) => format!("*{message:?}"),
                WatchEvent::Deleted(WatchObject::Protobuf(message)) => format!("-{message:?}"),
                WatchEvent::Bookmark(WatchObject::Protobuf(message)) => format!("={message:?}"),
                WatchEvent::Error(status) => serde_json::to_string(&status).unwrap(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            texts,
            [
                r#"+b"one""#,
                r#"*b"""#,
                r#"-b"three""#,
                r#"=b"four""#,
                r#"{"status":"Failure","code":410,"reason":"Expired","message":"old","details":{"causes":[{"reason":"c"}],"name":"n","retryAfterSeconds":7}}"#,
            ],
            "pieces of {length} bytes"
        );
    }
}

#[tokio::test]
async fn broken_protobuf_event_ends_stream_with_error() {
    for (bytes, expected) in [
        (vec![0, 0, 0, 2, 0x0a, 5], "unexpected EOF"),
        (vec![0, 0, 0, 0], "empty data"),
        (
            event("MOVED", "Pod", b""),
            "unknown type of watch event \"MOVED\"",
        ),
        (event("\u{0}", "Pod", b""), "unknown type"),
        (
            vec![0xff; 4 + EVENT_BYTES_MAX],
            "an event is longer than 67108864 bytes",
        ),
    ] {
        let good = event("ADDED", "Pod", b"never read");
        let (events, _) = watch(vec![bytes, good]).await;
        let [Err(error)] = &*events else {
            panic!("{} events", events.len());
        };
        assert!(error.to_string().contains(expected), "{error}");
    }
}
