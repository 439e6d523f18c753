//! Bearer tokens, checked by token reviews of the API server.

use std::num::NonZeroUsize;
use std::time::Duration;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use statefulset_client::resource::Resource;

use crate::serving::cache::{ExpiringCache, digest_of};
use crate::serving::review::Reviewer;
use crate::serving::user::User;

/// Resource of token reviews.
const REVIEWS: Resource = Resource {
    group: "authentication.k8s.io",
    version: "v1",
    plural: "tokenreviews",
    kind: "TokenReview",
};
/// Maximum number of cached reviews.
const CACHE_CAPACITY: NonZeroUsize = NonZeroUsize::new(4096).expect("not zero");
/// Maximum total size of cached reviews, in bytes.
const CACHE_BYTES_MAX: usize = 4 << 20;
/// Error for an invalid token. Upstream: `bearertoken.invalidToken`.
const INVALID: &str = "invalid bearer token";

/// Reviews tokens and caches the results.
///
/// Upstream: `cachedTokenAuthenticator` over `WebhookTokenAuthenticator`.
pub(crate) struct Tokens {
    reviewer: Reviewer,
    ttl: Duration,
    /// Results by the token's digest, so that no token is stored; `None` caches an invalid token.
    cache: ExpiringCache<Option<User>>,
}

impl Tokens {
    /// Creates a reviewer that caches results for `ttl`.
    pub(crate) fn new(reviewer: Reviewer, ttl: Duration) -> Self {
        Self {
            reviewer,
            ttl,
            cache: ExpiringCache::new(CACHE_CAPACITY, CACHE_BYTES_MAX),
        }
    }

    /// User of a token.
    ///
    /// # Errors
    ///
    /// The token is invalid, or the review failed. Failures are not cached.
    pub(super) async fn user(&self, token: &str) -> Result<User, String> {
        let key = digest_of(token.as_bytes());
        let known = if let Some(known) = self.cache.get(&key) {
            known
        } else {
            let found = self.ask(token).await?;
            self.cache.insert(key, found.clone(), self.ttl);
            found
        };
        known.ok_or_else(|| INVALID.to_owned())
    }

    async fn ask(&self, token: &str) -> Result<Option<User>, String> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                audiences: None,
            },
            ..TokenReview::default()
        };
        let answer = self.reviewer.review(&REVIEWS, &review).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let status = answer.status.unwrap_or_default();
        if status.authenticated == Some(true) {
            return Ok(Some(user(status.user.unwrap_or_default())));
        }
        match status.error.filter(|error| !error.is_empty()) {
            Some(error) => Err(error),
            None => Ok(None),
        }
    }
}

fn user(info: UserInfo) -> User {
    User {
        name: info.username.unwrap_or_default(),
        uid: info.uid.unwrap_or_default(),
        groups: info.groups.unwrap_or_default(),
        extra: info.extra.unwrap_or_default(),
    }
}

/// The bearer token of a request; `None` for other schemes.
///
/// Upstream: `bearertoken.Authenticator.AuthenticateRequest`.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let mut parts = value.splitn(3, ' ');
    let (scheme, token) = (parts.next()?, parts.next()?);
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
