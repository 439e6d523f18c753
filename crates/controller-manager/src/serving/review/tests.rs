//! Tests of retries and time limits of reviews.

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

/// Requests a review from a server that always responds like this. Returns the number of requests,
/// the duration and the error.
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
async fn temporary_failures_are_retried() {
    let (count, millis, error) = asked(|| Ok(failure(500, "InternalError", "no"))).await;
    // 500 ms; each pause is 1.5 times the one before.
    assert_eq!(
        (count, millis, error.as_str()),
        (5, 500 + 750 + 1125 + 1688, "no")
    );
    let (count, _, _) = asked(|| Ok(failure(429, "TooManyRequests", "no"))).await;
    assert_eq!(count, 5);
}

#[tokio::test(start_paused = true)]
async fn rejections_are_not_retried() {
    let (count, millis, error) = asked(|| Ok(failure(403, "Forbidden", "no"))).await;
    assert_eq!((count, millis, error.as_str()), (1, 0, "no"));
    let (count, _, error) = asked(|| Err("refused")).await;
    assert_eq!(count, 1);
    assert!(error.contains("refused"), "{error}");
    let (count, _, error) = asked(|| Ok((200, "no JSON".to_owned()))).await;
    assert_eq!(count, 1);
    assert!(error.contains("cannot read the response"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn failing_reviews_are_logged_once() {
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
    assert!(lines[0].contains("cannot send token and access reviews"));
    assert!(lines[1].contains("token and access reviews work again"));
}
