//! Authorization: public paths, the group with all permissions, and access reviews of the API
//! server for everything else.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use serde::Serialize;
use statefulset_client::error::Error;
use statefulset_client::resource::Resource;

use super::cache::{Digest, ExpiringCache, HeapSize, digest_of};
use super::review::Reviewer;
use super::user::{MASTERS, User};

/// Resource of access reviews.
const REVIEWS: Resource = Resource {
    group: "authorization.k8s.io",
    version: "v1",
    plural: "subjectaccessreviews",
    kind: "SubjectAccessReview",
};
/// Maximum number of cached decisions. Upstream: the webhook authorizer's `LRUExpireCache`.
const CACHE_CAPACITY: NonZeroUsize = NonZeroUsize::new(8192).expect("not zero");
/// Maximum total size of cached decisions, in bytes.
const CACHE_BYTES_MAX: usize = 4 << 20;
/// Maximum size of a cached request, in bytes. Upstream: `maxControlledAttrCacheSize`.
const CACHED_BYTES_MAX: usize = 10_000;

/// Public paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllowedPaths {
    exact: Vec<String>,
    prefixes: Vec<String>,
}

impl AllowedPaths {
    /// Parses paths from `--authorization-always-allow-paths`; a trailing `*` matches any suffix.
    ///
    /// # Errors
    ///
    /// A `*` in another place.
    ///
    /// Upstream: `path.NewAuthorizer`.
    pub(crate) fn new<T: AsRef<str>>(paths: &[T]) -> Result<Self, String> {
        let (mut exact, mut prefixes) = (Vec::new(), Vec::new());
        for path in paths {
            let path = path.as_ref().strip_prefix('/').unwrap_or(path.as_ref());
            let prefix = path.strip_suffix('*');
            if prefix.unwrap_or(path).contains('*') {
                return Err(format!("only trailing * allowed in {path:?}"));
            }
            match prefix {
                Some(prefix) => prefixes.push(prefix.to_owned()),
                None => exact.push(path.to_owned()),
            }
        }
        Ok(Self { exact, prefixes })
    }

    fn allow(&self, path: &str) -> bool {
        let path = path.strip_prefix('/').unwrap_or(path);
        let exact = self.exact.iter().any(|allowed| allowed == path);
        exact || self.prefixes.iter().any(|prefix| path.starts_with(prefix))
    }
}

/// Result of an authorization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Allowed.
    Allow,
    /// Denied, with the API server's reason if it gives one.
    Deny(String),
}

/// Cache lifetimes of the API server's decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheTtls {
    /// Lifetime of allowed requests.
    pub(crate) authorized: Duration,
    /// Lifetime of denied requests.
    pub(crate) unauthorized: Duration,
}

/// Authorizes requests.
///
/// Upstream: `DelegatingAuthorizationOptions`, `webhook.WebhookAuthorizer`.
pub(crate) struct Authorization {
    paths: AllowedPaths,
    reviewer: Option<Reviewer>,
    ttls: CacheTtls,
    /// Decisions by the request's digest.
    cache: ExpiringCache<Decision>,
}

impl HeapSize for Decision {
    fn heap_size(&self) -> usize {
        match self {
            Self::Allow => 0,
            Self::Deny(reason) => reason.len(),
        }
    }
}

/// User, verb and path of a request.
#[derive(Debug, Serialize)]
struct Question<'a> {
    user: &'a User,
    verb: &'a str,
    path: &'a str,
}

impl Question<'_> {
    /// Digest of the request; `None` if it can't be serialized.
    fn digest(&self) -> Option<Digest> {
        let text = serde_json::to_vec(self).ok()?;
        Some(digest_of(&text))
    }
}

impl Authorization {
    /// Without a reviewer only public paths are allowed, and everything to `system:masters`.
    pub(crate) fn new(paths: AllowedPaths, reviewer: Option<Reviewer>, ttls: CacheTtls) -> Self {
        Self {
            paths,
            reviewer,
            ttls,
            cache: ExpiringCache::new(CACHE_CAPACITY, CACHE_BYTES_MAX),
        }
    }

    /// Returns true if the path is public.
    pub(crate) fn is_open(&self, path: &str) -> bool {
        self.paths.allow(path)
    }

    /// Decides whether the user may do this. The verb is an HTTP method in lower case.
    ///
    /// # Errors
    ///
    /// The API server can't be asked; the request must not be allowed.
    pub(crate) async fn authorize(
        &self,
        user: &User,
        verb: &str,
        path: &str,
    ) -> Result<Decision, Error> {
        if user.is_in(MASTERS) || self.is_open(path) {
            return Ok(Decision::Allow);
        }
        let Some(reviewer) = &self.reviewer else {
            return Ok(Decision::Deny(String::new()));
        };
        let question = Question { user, verb, path };
        let digest = question.digest();
        if let Some(decision) = digest.and_then(|digest| self.cache.get(&digest)) {
            return Ok(decision);
        }
        let decision = ask(reviewer, &question).await?;
        if let Some(digest) = digest
            && verb.len() + path.len() < CACHED_BYTES_MAX
        {
            let ttl = match decision {
                Decision::Allow => self.ttls.authorized,
                Decision::Deny(_) => self.ttls.unauthorized,
            };
            self.cache.insert(digest, decision.clone(), ttl);
        }
        Ok(decision)
    }
}

async fn ask(reviewer: &Reviewer, question: &Question<'_>) -> Result<Decision, Error> {
    let Question { user, verb, path } = question;
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let extra: BTreeMap<_, _> = user.extra.clone();
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: given(&user.name),
            uid: given(&user.uid),
            groups: Some(user.groups.clone()).filter(|groups| !groups.is_empty()),
            extra: Some(extra).filter(|extra| !extra.is_empty()),
            non_resource_attributes: Some(NonResourceAttributes {
                path: given(path),
                verb: given(verb),
            }),
            resource_attributes: None,
        },
        ..SubjectAccessReview::default()
    };
    let answer = reviewer.review(&REVIEWS, &review).await?;
    let status = answer.status.unwrap_or_default();
    // A response that both allows and denies is a denial.
    if status.allowed && status.denied != Some(true) {
        return Ok(Decision::Allow);
    }
    Ok(Decision::Deny(status.reason.unwrap_or_default()))
}

#[cfg(test)]
mod tests;
