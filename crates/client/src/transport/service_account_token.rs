//! A service account's bearer token, requested from the API server by another client.
//!
//! No background task renews it: the first request that finds it due renews it, while other
//! requests use the current token.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use tokio::time::{Instant, sleep, timeout};

use crate::backoff::{Backoff, NoJitter};
use crate::clock::Clock;
use crate::error::{Error, NoToken, Preparation};
use crate::fault_log::FaultLog;
use crate::fence::NotLeading;
use crate::rest::RestClient;
pub use name::ServiceAccountName;
use request::{Token, request_token};

mod name;
mod request;

/// Attempts to get a token before a request fails.
/// Upstream: `tokenSourceImpl.Token`.
const TRIES: Backoff = Backoff {
    tries: 4,
    first: Duration::from_millis(500),
    factor: 2.0,
    jitter: 0.0,
};
/// A token is renewed when less than this share of its lifetime is left.
/// Upstream: `defaultLeewayPercent`.
const LEEWAY: f64 = 0.2;
/// Minimum lifetime assumed for a token: a shorter one means that the clock differs from the
/// server's.
const LIFETIME_MIN: Duration = Duration::from_secs(600);
/// Time before another attempt to renew the token.
const RENEWAL_PAUSE: Duration = Duration::from_secs(10);
/// Time that a request waits for a new token if there is a current one.
const RENEWAL_MAX: Duration = Duration::from_secs(5);

/// A service account's token, cached until it is due for renewal. A missing account is created, and
/// so is its namespace.
///
/// If the renewal fails, the previous token stays in use until the server rejects it. A failure is
/// logged when it starts and when it ends.
///
/// Upstream: `tokenSourceImpl` of `controller-manager/pkg/clientbuilder`, `cachingTokenSource`.
pub struct ServiceAccountToken {
    client: RestClient,
    account: ServiceAccountName,
    clock: Arc<dyn Clock>,
    /// Held while requesting a token.
    turn: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    kept: Option<Kept>,
    /// Number of failed requests for a token, and the last failure.
    failures: u64,
    failure: Option<NoToken>,
    /// The log of failed requests.
    missing: FaultLog,
}

#[derive(Clone)]
struct Kept {
    header: HeaderValue,
    /// The time of the next renewal.
    due: Instant,
}

impl ServiceAccountToken {
    /// Creates the token of an account, requested with this client. The client needs the
    /// permissions to get and create `serviceaccounts` and to create `serviceaccounts/token`. A
    /// token request is a write: if writes need a lease, the client must have their
    /// [`Fence`](crate::fence::Fence).
    pub fn new(client: RestClient, account: ServiceAccountName, clock: Arc<dyn Clock>) -> Self {
        Self {
            client,
            account,
            clock,
            turn: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        }
    }

    /// Returns the token as a header value.
    pub(super) async fn header(&self) -> Result<HeaderValue, NoToken> {
        let (kept, failures) = {
            let state = self.state();
            (state.kept.clone(), state.failures)
        };
        let _turn = match &kept {
            Some(kept) if Instant::now() < kept.due => return Ok(kept.header.clone()),
            Some(kept) => match self.turn.try_lock() {
                Ok(turn) => turn,
                Err(_) => return Ok(kept.header.clone()),
            },
            None => self.turn.lock().await,
        };
        if let Some(outcome) = self.outcome_of_others(failures) {
            return outcome;
        }
        let Some(kept) = kept else {
            let asked = self.ask().await;
            return self.take(asked);
        };
        // Set before the request, which may be dropped.
        self.put_off();
        if let Ok(asked) = timeout(RENEWAL_MAX, self.ask()).await {
            return self.take(asked);
        }
        let late = format!("no response within {} s", RENEWAL_MAX.as_secs());
        self.log(&mut self.state(), &late);
        Ok(kept.header)
    }

    /// Postpones the next attempt to renew the current token.
    fn put_off(&self) {
        if let Some(kept) = &mut self.state().kept {
            kept.due = Instant::now() + RENEWAL_PAUSE;
        }
    }

    /// Records that the server rejected this token: the next request gets a new one.
    ///
    /// Upstream: `ResetTokenOlderThan`.
    pub(super) fn drop_refused(&self, header: &HeaderValue) {
        let mut state = self.state();
        if state
            .kept
            .as_ref()
            .is_some_and(|kept| kept.header == header)
        {
            state.kept = None;
        }
    }

    /// Returns the result of another request's attempt in the meantime.
    fn outcome_of_others(&self, failures_before: u64) -> Option<Result<HeaderValue, NoToken>> {
        let state = self.state();
        match &state.kept {
            Some(kept) if Instant::now() < kept.due => Some(Ok(kept.header.clone())),
            None if state.failures > failures_before => state.failure.clone().map(Err),
            _ => None,
        }
    }

    /// Requests a token until the server issues one or the attempts are used up.
    async fn ask(&self) -> Result<Token, Error> {
        let mut delays = TRIES.delays(&NoJitter);
        loop {
            let error = match request_token(&self.client, &self.account).await {
                Ok(token) => return Ok(token),
                Err(error) => error,
            };
            let may_go_on = !matches!(error, Error::NotLeading { .. });
            match delays.next().filter(|_| may_go_on) {
                Some(delay) => sleep(delay).await,
                None => return Err(error),
            }
        }
    }

    /// Stores the new token, or keeps the previous one.
    fn take(&self, asked: Result<Token, Error>) -> Result<HeaderValue, NoToken> {
        let mut state = self.state();
        let error = match asked {
            Ok(token) => {
                let lifetime = token.expires.duration_since(self.clock.now());
                let lifetime = Duration::try_from(lifetime).unwrap_or_default();
                let lifetime = lifetime.max(LIFETIME_MIN);
                state.kept = Some(Kept {
                    header: token.header.clone(),
                    due: Instant::now() + lifetime.mul_f64(1.0 - LEEWAY),
                });
                if state.missing.end().is_some() {
                    tracing::info!(parent: None, account = %self.account, "the service account has a new token");
                }
                return Ok(token.header);
            }
            Err(error) => error,
        };
        // The API health log and the elector report the other failures.
        if !error.is_server_wide() && !matches!(error, Error::NotLeading { .. }) {
            self.log(&mut state, &error);
        }
        if let Some(kept) = &mut state.kept {
            kept.due = Instant::now() + RENEWAL_PAUSE;
            return Ok(kept.header.clone());
        }
        let failure = match error {
            Error::NotLeading { .. } => NoToken::NotLeading(NotLeading),
            error => NoToken::Failed {
                account: self.account.to_string(),
                source: Preparation::new(error),
            },
        };
        state.failures += 1;
        state.failure = Some(failure.clone());
        Err(failure)
    }

    /// Logs the failure once.
    fn log(&self, state: &mut State, error: &dyn fmt::Display) {
        if !state.missing.begin(()) {
            return;
        }
        let account = &self.account;
        if state.kept.is_some() {
            tracing::warn!(parent: None, %account, %error, "cannot renew the token of the service account, trying again; keeping the previous one");
        } else {
            tracing::warn!(parent: None, %account, %error, "cannot get a token of the service account, trying again");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
