//! Tests of the retries of reviews.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use k8s_openapi::api::authentication::v1::TokenReview;
use statefulset_client::fake::CapturedLog;
use tokio::time::Instant;
use tracing::Level;

use super::*;
use crate::scripted::{Said, client, failure};
use crate::serving::fixture::reviewer;

const REVIEWS: Resource = Resource {
    group: "authentication.k8s.io",
    version: "v1",
    plural: "tokenreviews",
    kind: "TokenReview",
};

/// Asks a server that says this each time; how often it was asked, how long that took, and why
/// there was no answer.
async fn asked(said: impl Fn() -> Said + Send + Sync + 'static) -> (usize, u128, String) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let client = client(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        said()
    });
    let begin = Instant::now();
    let (reviewer, review) = (reviewer(client), TokenReview::default());
    let error = reviewer.review(&REVIEWS, &review).await.unwrap_err();
    let error = error.to_string();
    (
        count.load(Ordering::Relaxed),
        begin.elapsed().as_millis(),
        error,
    )
}

#[tokio::test(start_paused = true)]
async fn what_may_pass_is_asked_again() {
    let (count, millis, error) = asked(|| Ok(failure(500, "InternalError", "no"))).await;
    // 500 ms, and each pause half as long again.
    assert_eq!(
        (count, millis, error.as_str()),
        (5, 500 + 750 + 1125 + 1688, "no")
    );
    let (count, _, _) = asked(|| Ok(failure(429, "TooManyRequests", "no"))).await;
    assert_eq!(count, 5);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_taken_at_once() {
    let (count, millis, error) = asked(|| Ok(failure(403, "Forbidden", "no"))).await;
    assert_eq!((count, millis, error.as_str()), (1, 0, "no"));
    let (count, _, error) = asked(|| Err("refused")).await;
    assert_eq!(count, 1);
    assert!(error.contains("refused"), "{error}");
    let (count, _, error) = asked(|| Ok((200, "no JSON".to_owned()))).await;
    assert_eq!(count, 1);
    assert!(error.contains("cannot read the answer"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn that_there_are_no_answers_is_told_once() {
    let log = CapturedLog::at(Level::INFO);
    let is_well = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    let client = client(move |_| {
        Ok(if well.load(Ordering::Relaxed) {
            (201, "{\"spec\":{}}".to_owned())
        } else {
            failure(500, "InternalError", "no")
        })
    });
    let reviewer = reviewer(client);
    let ask = async || reviewer.review(&REVIEWS, &TokenReview::default()).await;
    for _ in 0..3 {
        ask().await.unwrap_err();
    }
    is_well.store(true, Ordering::Relaxed);
    ask().await.unwrap();
    let lines = log.take();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].contains("cannot ask the API server about users"));
    assert!(lines[1].contains("answers about users again"));
}
