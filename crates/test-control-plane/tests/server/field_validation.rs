//! `fieldValidation`: errors and warnings about unknown and duplicate fields.

use bytes::Bytes;
use http::header::WARNING;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use kube_test_control_plane::{TestControlPlane, UnknownFields};
use serde_json::Value;

use crate::support::Plane;

const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// A stateful set with a misspelt field, and an unknown field in a container.
const TYPOS: &str = r#"{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"web"},
    "spec":{"serviceName":"web","selector":{"matchLabels":{"app":"web"}},
    "template":{"metadata":{"labels":{"app":"web"}},
    "spec":{"containers":[{"name":"c","image":"img:1","imagee":"x"}]}},"replica":3}}"#;

const WARNINGS: [&str; 2] = [
    r#"299 - "unknown field \"spec.template.spec.containers[0].imagee\"""#,
    r#"299 - "unknown field \"spec.replica\"""#,
];

struct Answer {
    code: u16,
    body: Value,
    warnings: Vec<String>,
}

impl Answer {
    fn message(&self) -> &str {
        self.body["message"].as_str().unwrap()
    }
}

async fn plane(policy: UnknownFields) -> Plane {
    let builder = TestControlPlane::builder().unknown_fields(policy);
    Plane::new(builder.start().await)
}

async fn send(plane: &Plane, method: Method, path: &str, content_type: &str, body: &str) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("Content-Type", content_type)
        .body(Full::new(Bytes::from(body.to_owned())))
        .unwrap();
    let reply = plane.0.server().serve(request).await.unwrap();
    let warnings = reply.headers().get_all(WARNING).iter();
    let warnings = warnings.map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned());
    Answer {
        code: reply.status().as_u16(),
        warnings: warnings.collect(),
        body: serde_json::from_slice(&reply.into_body().collect().await.unwrap().to_bytes())
            .unwrap(),
    }
}

async fn post(plane: &Plane, parameters: &str, body: &str) -> Answer {
    let path = format!("{SETS}{parameters}");
    send(plane, Method::POST, &path, "application/json", body).await
}

#[tokio::test(start_paused = true)]
async fn strict_client_is_rejected_under_both_policies() {
    for policy in [UnknownFields::Keep, UnknownFields::Prune] {
        let plane = plane(policy).await;
        let answer = post(&plane, "?fieldValidation=Strict", TYPOS).await;
        assert_eq!(answer.code, 400);
        assert_eq!(
            answer.message(),
            "StatefulSet in version \"v1\" cannot be handled as a StatefulSet: strict decoding \
             error: unknown field \"spec.template.spec.containers[0].imagee\", unknown field \
             \"spec.replica\""
        );
        assert_eq!(plane.code(&format!("{SETS}/web")).await, 404);
        let twice = r#"{"metadata":{"name":"web","name":"web2"}}"#;
        let answer = post(&plane, "?fieldValidation=Strict", twice).await;
        assert_eq!(
            answer.message(),
            "StatefulSet in version \"v1\" cannot be handled as a StatefulSet: strict decoding \
             error: duplicate field \"metadata.name\""
        );
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn warnings_are_independent_of_the_storage_policy() {
    for (policy, kept) in [(UnknownFields::Keep, true), (UnknownFields::Prune, false)] {
        let plane = plane(policy).await;
        let answer = post(&plane, "?fieldValidation=Warn", TYPOS).await;
        assert_eq!(
            (answer.code, answer.warnings.as_slice()),
            (201, &WARNINGS.map(str::to_owned)[..])
        );
        let stored = plane.get(&format!("{SETS}/web")).await;
        assert_eq!(stored["spec"].get("replica").is_some(), kept);
        let path = format!("{SETS}/web?fieldValidation=Warn");
        let answer = send(&plane, Method::PUT, &path, "application/json", TYPOS).await;
        assert_eq!(
            (answer.code, answer.warnings.as_slice()),
            (200, &WARNINGS.map(str::to_owned)[..])
        );
        let refused = TYPOS.replace("\"name\":\"web\"", "\"name\":\"Web\"");
        let answer = post(&plane, "?fieldValidation=Warn", &refused).await;
        assert_eq!((answer.code, answer.warnings.len()), (422, 2));
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn client_without_validation_is_warned_of_pruned_fields() {
    for (policy, count) in [(UnknownFields::Keep, 0), (UnknownFields::Prune, 2)] {
        let plane = plane(policy).await;
        let answer = post(&plane, "?dryRun=All", TYPOS).await;
        assert_eq!((answer.code, answer.warnings.len()), (201, count));
        let answer = post(&plane, "?fieldValidation=Ignore", TYPOS).await;
        assert_eq!((answer.code, answer.warnings.len()), (201, 0));
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn patch_is_validated_by_its_own_fields() {
    let plane = plane(UnknownFields::Keep).await;
    assert_eq!(post(&plane, "", TYPOS).await.code, 201);
    let path = format!("{SETS}/web?fieldValidation=Strict");
    // The stored object has unknown fields; this patch adds none.
    let scale = r#"{"spec":{"replicas":2}}"#;
    let answer = send(&plane, Method::PATCH, &path, MERGE, scale).await;
    assert_eq!((answer.code, answer.warnings.len()), (200, 0));
    let typo = r#"{"spec":{"replicass":2}}"#;
    for (content_type, value) in [
        (
            STRATEGIC,
            r#"" is invalid: patch: Invalid value: "map[spec:map[replicass:2]]": "#,
        ),
        (
            MERGE,
            r#"" is invalid: patch: Invalid value: "{\"apiVersion\":\"apps/v1\","#,
        ),
    ] {
        let answer = send(&plane, Method::PATCH, &path, content_type, typo).await;
        assert_eq!(answer.code, 422);
        let message = answer.message();
        assert!(message.contains(value), "{message}");
        let found = "strict decoding error: unknown field \"spec.replicass\"";
        assert!(message.ends_with(found), "{message}");
        assert_eq!(answer.body["details"]["causes"][0]["field"], "patch");
    }
    let twice = r#"{"spec":{"replicas":2,"replicas":3}}"#;
    let answer = send(&plane, Method::PATCH, &path, MERGE, twice).await;
    let found = "strict decoding error: duplicate field \"spec.replicas\"";
    assert!(answer.message().ends_with(found), "{}", answer.message());
    let path = format!("{SETS}/web?fieldValidation=Warn");
    let newer = r#"{"spec":{"template":{"spec":{"newer":1}}}}"#;
    let answer = send(&plane, Method::PATCH, &path, MERGE, newer).await;
    let warning = r#"299 - "unknown field \"spec.template.spec.newer\"""#;
    assert_eq!(
        (answer.code, answer.warnings),
        (200, vec![warning.to_owned()])
    );
    let path = format!("{SETS}/web");
    let answer = send(
        &plane,
        Method::PATCH,
        &path,
        MERGE,
        &newer.replace("newer", "newest"),
    )
    .await;
    assert_eq!((answer.code, answer.warnings.len()), (200, 0));
}
