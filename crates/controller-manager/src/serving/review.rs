//! Token and access reviews of the API server.

use std::error::Error as StdError;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use statefulset_client::backoff::{Backoff, Jitter};
use statefulset_client::error::Error;
use statefulset_client::fault_log::FaultLog;
use statefulset_client::resource::Resource;
use statefulset_client::rest::RestClient;
use tokio::time::{sleep, timeout};

/// Time limit for a review, including retries.
///
/// Upstream: `TokenRequestTimeout` and `ClientTimeout` of the delegating options.
const REVIEW_MAX: Duration = Duration::from_secs(10);

/// Upstream: `DefaultAuthWebhookRetryBackoff`.
const RETRY: Backoff = Backoff {
    tries: 5,
    first: Duration::from_millis(500),
    factor: 1.5,
    jitter: 0.2,
};

/// Requests reviews from the API server.
#[derive(Clone)]
pub(crate) struct Reviewer {
    client: RestClient,
    jitter: Arc<dyn Jitter>,
    /// The log of failed reviews.
    failure: Arc<Mutex<FaultLog>>,
}

impl Reviewer {
    /// Creates a reviewer with this client.
    pub(crate) fn new(client: RestClient, jitter: Arc<dyn Jitter>) -> Self {
        Self {
            client,
            jitter,
            failure: Arc::default(),
        }
    }

    /// Posts a review and returns the object of the response. Retries transient failures, which is safe
    /// because a review changes nothing. Logs the first failure, and the recovery.
    ///
    /// # Errors
    ///
    /// A rejection, or no response in time.
    ///
    /// Upstream: `webhook.WithExponentialBackoff`.
    pub(crate) async fn review<T: Serialize + DeserializeOwned>(
        &self,
        resource: &Resource,
        review: &T,
    ) -> Result<T, Error> {
        let action = || format!("POST {}", resource.collection_path(""));
        let decode = |source| Error::Decode {
            action: action(),
            source,
        };
        let body = serde_json::to_string(review).map_err(decode)?;
        let asking = async {
            let mut delays = RETRY.delays(&*self.jitter);
            loop {
                let error = match self.client.create(resource, "", body.clone()).await {
                    Ok(text) => return serde_json::from_str(&text).map_err(decode),
                    Err(error) => error,
                };
                match delays.next().filter(|_| may_pass(&error)) {
                    Some(delay) => sleep(delay).await,
                    None => return Err(error),
                }
            }
        };
        let Ok(answer) = timeout(REVIEW_MAX, asking).await else {
            let error = Error::Timeout {
                action: action(),
                after: REVIEW_MAX,
            };
            self.log_once(&error);
            return Err(error);
        };
        match &answer {
            Ok(_) if self.failure().end().is_some() => {
                tracing::info!("token and access reviews work again");
            }
            // `ApiHealthLog` logs the other failures.
            Err(error) if !error.is_server_wide() => self.log_once(error),
            _ => {}
        }
        answer
    }

    fn failure(&self) -> MutexGuard<'_, FaultLog> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log_once(&self, error: &Error) {
        if self.failure().begin(()) {
            tracing::warn!(%error, "cannot send token and access reviews, retrying for each request");
        }
    }
}

/// Returns true if a retry may succeed.
///
/// Upstream: `webhook.DefaultShouldRetry`.
fn may_pass(error: &Error) -> bool {
    if let Some(status) = error.status() {
        return error.is_too_many_requests() || status.code == 500;
    }
    if matches!(error, Error::NoCredentials { .. }) {
        return false;
    }
    let mut next = error.source();
    while let Some(cause) = next {
        let reset = cause
            .downcast_ref::<io::Error>()
            .is_some_and(|err| err.kind() == io::ErrorKind::ConnectionReset);
        if reset {
            return true;
        }
        next = cause.source();
    }
    false
}

#[cfg(test)]
mod tests;
