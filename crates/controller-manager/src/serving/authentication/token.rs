//! Whose bearer token is it? The API server is asked.

use std::num::NonZeroUsize;
use std::time::Duration;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use statefulset_client::resource::Resource;

use crate::serving::cache::{ExpiringCache, digest_of};
use crate::serving::review::Reviewer;
use crate::serving::user::User;

/// Where the question is asked.
const REVIEWS: Resource = Resource {
    group: "authentication.k8s.io",
    version: "v1",
    plural: "tokenreviews",
    kind: "TokenReview",
};
/// How many answers are remembered.
const CACHE_CAPACITY: NonZeroUsize = NonZeroUsize::new(4096).expect("not zero");
/// How many bytes they may have together.
const CACHE_BYTES_MAX: usize = 4 << 20;
/// What is wrong with a token that is nobody's. Upstream: `bearertoken.invalidToken`.
const INVALID: &str = "invalid bearer token";

/// Asks whose tokens they are, and remembers the answers for a while.
///
/// Upstream: `cachedTokenAuthenticator` over `WebhookTokenAuthenticator`.
pub(crate) struct Tokens {
    reviewer: Reviewer,
    ttl: Duration,
    /// By the token's digest, so that no token is kept; `None` caches an invalid token.
    cache: ExpiringCache<Option<User>>,
}

impl Tokens {
    /// Remembers answers for `ttl`.
    pub(crate) fn new(reviewer: Reviewer, ttl: Duration) -> Self {
        Self {
            reviewer,
            ttl,
            cache: ExpiringCache::new(CACHE_CAPACITY, CACHE_BYTES_MAX),
        }
    }

    /// Whose token it is.
    ///
    /// # Errors
    ///
    /// It is nobody's, or the API server can't be asked. The latter isn't remembered.
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

/// The bearer token of a request. Other schemes, and none, are no token.
///
/// Upstream: `bearertoken.Authenticator.AuthenticateRequest`.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let mut parts = value.splitn(3, ' ');
    let (scheme, token) = (parts.next()?, parts.next()?);
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
