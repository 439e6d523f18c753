//! Faults as clients see them.

mod gates;
mod outages;
mod requests;
mod time_limits;
mod views;
mod watches;

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::reply::ResponseBody;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A client of a watch.
struct WatchReader {
    body: ResponseBody,
    buffer: BytesMut,
}

impl WatchReader {
    /// Watches config maps from the newest revision.
    async fn open(plane: &TestControlPlane) -> Self {
        let revision = plane.server().store().revision();
        Self::open_with(plane, &format!("resourceVersion={revision}")).await
    }

    async fn open_with(plane: &TestControlPlane, query: &str) -> Self {
        Self::open_as(plane, "test", query).await
    }

    async fn open_as(plane: &TestControlPlane, agent: &str, query: &str) -> Self {
        let request = Request::get(format!("{MAPS}?watch=1&{query}"))
            .header("User-Agent", agent)
            .body(Full::<Bytes>::default())
            .unwrap();
        let reply = plane.server().serve(request).await.unwrap();
        assert_eq!(reply.status(), 200);
        Self {
            body: reply.into_body(),
            buffer: BytesMut::new(),
        }
    }

    /// Returns the next item within a second: `TYPE name`, `TYPE reason` of an error, `end`,
    /// `broken`, `half` for an incomplete line, or `nothing`.
    async fn next(&mut self) -> String {
        let read = tokio::time::timeout(Duration::from_secs(1), self.read());
        read.await.unwrap_or_else(|_| "nothing".to_owned())
    }

    async fn read(&mut self) -> String {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end + 1);
                return describe(&serde_json::from_slice(&line).unwrap());
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.buffer.extend_from_slice(&frame.into_data().unwrap()),
                Some(Err(_)) => return "broken".to_owned(),
                None if self.buffer.is_empty() => return "end".to_owned(),
                None => {
                    self.buffer.clear();
                    return "half".to_owned();
                }
            }
        }
    }

    /// Returns the next `count` items.
    async fn take(&mut self, count: usize) -> Vec<String> {
        let mut found = Vec::new();
        for _ in 0..count {
            found.push(self.next().await);
        }
        found
    }
}

fn describe(event: &Value) -> String {
    let object = &event["object"];
    let what = [&object["metadata"]["name"], &object["reason"]];
    let what = what.iter().find_map(|value| value.as_str());
    let kind = event["type"].as_str().unwrap_or("?");
    format!("{kind} {}", what.unwrap_or("")).trim().to_owned()
}

async fn create(plane: &TestControlPlane, name: &str) {
    let body = json!({"metadata": {"name": name}});
    let (code, _) = plane
        .server()
        .call_json(Method::POST, MAPS, "test", &body)
        .await;
    assert_eq!(code, 201);
}

async fn delete(plane: &TestControlPlane, name: &str) {
    let path = format!("{MAPS}/{name}");
    let (code, _) = plane
        .server()
        .call_json(Method::DELETE, &path, "test", &Value::Null)
        .await;
    assert_eq!(code, 200);
}
