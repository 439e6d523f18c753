//! The user as which this program writes.

use std::time::Duration;

use serde_json::{Value, json};
use statefulset_client::fault_log::FaultLog;
use statefulset_client::resource::SELF_SUBJECT_REVIEWS;
use statefulset_client::rest::RestClient;
use tokio::time::sleep;

/// First pause between two attempts; each pause doubles.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Asks the API server for this client's user, until it responds.
pub(super) async fn user(client: &RestClient) -> String {
    let review = json!({
        "apiVersion": SELF_SUBJECT_REVIEWS.api_version(),
        "kind": SELF_SUBJECT_REVIEWS.kind,
    });
    let mut failure = FaultLog::default();
    let mut pause = PAUSE_MIN;
    loop {
        let reviewed = client.create(&SELF_SUBJECT_REVIEWS, "", review.to_string());
        let problem = match reviewed.await {
            Ok(text) => match user_of(&text) {
                Some(user) => return user,
                None => "the response names no user".to_owned(),
            },
            Err(error) if error.is_server_wide() => String::new(),
            Err(error) => error.to_string(),
        };
        // The log of API health reports the other failures.
        if !problem.is_empty() && failure.begin(problem.clone()) {
            tracing::warn!(
                error = problem,
                "cannot learn this program's user, trying again"
            );
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

fn user_of(review: &str) -> Option<String> {
    let review: Value = serde_json::from_str(review).ok()?;
    let user = review.pointer("/status/userInfo/username")?.as_str()?;
    Some(user.to_owned())
}
