//! Tests of authorization.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::time::advance;

use super::*;
use crate::scripted::{client, failure};
use crate::serving::fixture::{authorization, reviewer};

const NOBODY: Decision = Decision::Deny(String::new());

fn user(name: &str, group: &str) -> User {
    User {
        name: name.to_owned(),
        groups: vec![group.to_owned()],
        ..User::default()
    }
}

#[tokio::test]
async fn public_paths_and_masters_need_no_api_server() {
    let authorization = authorization(None);
    for (group, path, expected) in [
        ("a", "/healthz", Decision::Allow),
        ("a", "/livez", Decision::Allow),
        ("a", "healthz", Decision::Allow),
        ("a", "//healthz", NOBODY),
        ("a", "/healthz/", NOBODY),
        ("a", "/healthz/ping", NOBODY),
        ("a", "/metrics", NOBODY),
        ("a", "", NOBODY),
        ("system:masters", "/metrics", Decision::Allow),
    ] {
        let decision = authorization
            .authorize(&user("jane", group), "get", path)
            .await;
        assert_eq!(decision.unwrap(), expected, "{group} {path}");
    }
}

#[test]
fn trailing_star_matches_any_suffix() {
    let paths = AllowedPaths::new(&["/a*", "b/c"]).unwrap();
    for (path, expected) in [
        ("/a", true),
        ("/ab/c", true),
        ("/b/c", true),
        ("/b/cd", false),
        ("/", false),
    ] {
        assert_eq!(paths.allow(path), expected, "{path}");
    }
    assert!(AllowedPaths::new(&["*"]).unwrap().allow("/x"));
    assert_eq!(
        AllowedPaths::new(&["/a*b"]).unwrap_err(),
        "only trailing * allowed in \"a*b\""
    );
    assert!(AllowedPaths::new(&["/a**"]).is_err());
}

/// An authorization whose server returns this status, and the number of its requests.
fn scripted(status: &'static str) -> (Authorization, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let client = client(move |path| {
        assert_eq!(path, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
        counted.fetch_add(1, Ordering::Relaxed);
        if status.is_empty() {
            return Ok(failure(403, "Forbidden", "not you"));
        }
        let review = format!(r#"{{"metadata":{{}},"spec":{{}},"status":{status}}}"#);
        Ok((201, review))
    });
    (authorization(Some(reviewer(client))), count)
}

#[tokio::test(start_paused = true)]
async fn decisions_are_cached_for_the_configured_time() {
    for (status, expected, seconds) in [
        (r#"{"allowed":true}"#, Decision::Allow, 10),
        (r#"{"allowed":false}"#, NOBODY, 5),
        (
            r#"{"allowed":false,"reason":"why"}"#,
            Decision::Deny("why".to_owned()),
            5,
        ),
        (r#"{"allowed":true,"denied":true}"#, NOBODY, 5),
    ] {
        let (authorization, count) = scripted(status);
        let jane = user("jane", "a");
        let ask = |verb| authorization.authorize(&jane, verb, "/metrics");
        assert_eq!(ask("get").await.unwrap(), expected, "{status}");
        advance(Duration::from_secs(seconds - 1)).await;
        assert_eq!(ask("get").await.unwrap(), expected, "{status}");
        assert_eq!(count.load(Ordering::Relaxed), 1, "{status}");
        // Another verb is another request.
        ask("put").await.unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 2, "{status}");
        advance(Duration::from_secs(1)).await;
        ask("get").await.unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 3, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn failed_reviews_deny_and_are_not_cached() {
    let (authorization, count) = scripted("");
    for expected in 1..=2 {
        let decision = authorization
            .authorize(&user("jane", "a"), "get", "/metrics")
            .await;
        assert_eq!(decision.unwrap_err().to_string(), "not you");
        assert_eq!(count.load(Ordering::Relaxed), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn oversized_requests_are_not_cached() {
    let (authorization, count) = scripted(r#"{"allowed":false}"#);
    let path = "/".repeat(CACHED_BYTES_MAX);
    for expected in 1..=2 {
        let decision = authorization
            .authorize(&user("jane", "a"), "get", &path)
            .await;
        assert_eq!(decision.unwrap(), NOBODY);
        assert_eq!(count.load(Ordering::Relaxed), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn reasons_longer_than_the_cache_are_not_cached() {
    let reason = "x".repeat(CACHE_BYTES_MAX + 1);
    let status = json!({"allowed": false, "reason": reason}).to_string();
    let (authorization, count) = scripted(status.leak());
    let jane = user("jane", "a");
    for expected in 1..=2 {
        let decision = authorization.authorize(&jane, "get", "/metrics").await;
        assert_eq!(decision.unwrap(), Decision::Deny(reason.clone()));
        assert_eq!(count.load(Ordering::Relaxed), expected);
    }
}
