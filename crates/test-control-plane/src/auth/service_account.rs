//! Tokens of service accounts: what they claim, and whether it still holds.

use std::sync::OnceLock;

use jiff::{SignedDuration, Timestamp};
use kube_apimachinery::time;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::identity::{Identity, service_account_user};
use super::token::{KeyError, SigningKey, unverified_claims};
use crate::kinds;
use crate::object::{Draft, Key};
use crate::server::ApiServer;

/// Who issues the tokens, and who they are meant for unless a request names others.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";

/// How far clocks may differ: tokens count that long before and after their time.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// The key of a server, made when it is needed first.
#[derive(Debug, Default)]
pub(crate) struct TokenKey(OnceLock<Result<SigningKey, KeyError>>);

impl TokenKey {
    pub(crate) fn get(&self) -> Result<&SigningKey, KeyError> {
        let made = self.0.get_or_init(SigningKey::generate);
        made.as_ref().map_err(|err| *err)
    }
}

/// What a token claims.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Claims {
    pub aud: Vec<String>,
    pub exp: i64,
    pub iat: i64,
    pub iss: String,
    pub jti: String,
    #[serde(rename = "kubernetes.io")]
    pub bound: Bound,
    pub nbf: i64,
    pub sub: String,
}

/// What a token is bound to: it ends with any of these.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Bound {
    pub namespace: String,
    pub serviceaccount: Reference,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Reference>,
}

/// An object by name and uid.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Reference {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// Whom a token shows, and for whom it is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub identity: Identity,
    pub audiences: Vec<String>,
}

impl Reference {
    pub(crate) fn to(object: &Draft) -> Self {
        Self {
            name: object.metadata().name().to_owned(),
            uid: object.metadata().uid().to_owned(),
        }
    }
}

impl ApiServer {
    /// Whom a token of this server's key shows, if it is meant for one of `audiences`.
    ///
    /// # Errors
    ///
    /// Why it doesn't count, in words; nothing to say if it is no such token at all.
    ///
    /// Upstream: `jwtTokenAuthenticator.AuthenticateToken` and `validator.Validate`.
    pub(crate) fn verify_token(
        &self,
        token: &str,
        audiences: &[&str],
    ) -> Result<Shown, Option<String>> {
        let issuer = unverified_claims(token).map(|claims| claims["iss"] == ISSUER);
        if issuer != Some(true) {
            return Err(None);
        }
        let claims = self.token_key().ok().and_then(|key| key.verify(token));
        let claims: Option<Claims> = claims.and_then(|c| serde_json::from_value(c).ok());
        let claims = claims.ok_or_else(|| Some("invalid signature".to_owned()))?;
        let meant: Vec<String> = claims
            .aud
            .iter()
            .filter(|audience| audiences.contains(&audience.as_str()))
            .cloned()
            .collect();
        if meant.is_empty() {
            let wanted: Vec<String> = audiences.iter().map(|a| (*a).to_owned()).collect();
            return Err(Some(format!(
                "token audiences {} is invalid for the target audiences {}",
                go_list(&claims.aud),
                go_list(&wanted)
            )));
        }
        self.check_claims(&claims).map_err(Some)?;
        Ok(Shown {
            identity: identity(&claims),
            audiences: meant,
        })
    }

    /// Whether the time and the objects that a token is bound to are still there.
    fn check_claims(&self, claims: &Claims) -> Result<(), String> {
        let now = self.clock().now();
        let at = |seconds| Timestamp::from_second(seconds).unwrap_or_default();
        let later = |time: Timestamp| time.saturating_add(LEEWAY).unwrap_or(time);
        if later(at(claims.exp)) < now {
            return Err("service account token has expired".to_owned());
        }
        if later(now) < at(claims.nbf) {
            return Err("service account token is not valid yet".to_owned());
        }
        let Bound {
            namespace,
            serviceaccount: account,
            node,
            pod,
            secret,
        } = &claims.bound;
        let found = self.find("serviceaccounts", namespace, &account.name);
        let found = found.ok_or_else(|| format!("serviceaccounts {:?} not found", account.name))?;
        if gone_since(&found, now) {
            return Err(format!(
                "service account {namespace}/{} has been deleted",
                account.name
            ));
        }
        let uid = found.metadata().uid();
        if uid != account.uid {
            return Err(format!(
                "service account UID ({uid}) does not match claim ({})",
                account.uid
            ));
        }
        let mut bound = vec![("pods", "pod", pod), ("secrets", "secret", secret)];
        if pod.is_none() {
            bound.push(("nodes", "node", node));
        }
        for (storage, word, reference) in bound {
            let Some(reference) = reference else {
                continue;
            };
            let namespace = if storage == "nodes" { "" } else { namespace };
            let found = self.find(storage, namespace, &reference.name);
            let found = found.filter(|found| !gone_since(found, now));
            let found =
                found.ok_or_else(|| "service account token has been invalidated".to_owned())?;
            let uid = found.metadata().uid();
            if uid != reference.uid {
                return Err(format!(
                    "{word} UID ({uid}) does not match service account {word} ref claim ({})",
                    reference.uid
                ));
            }
        }
        Ok(())
    }

    pub(super) fn find(&self, storage: &'static str, namespace: &str, name: &str) -> Option<Draft> {
        let kind = kinds::by_storage(storage)?;
        let object = self.store().get(&Key::new(kind, namespace, name))?;
        Some(object.draft())
    }

    /// What those need to know who check tokens themselves.
    pub(crate) fn token_issuer_keys(&self) -> Value {
        let keys: Vec<Value> = self
            .token_key()
            .ok()
            .map(SigningKey::to_jwk)
            .into_iter()
            .collect();
        json!({"keys": keys})
    }
}

/// Whether the deletion of an object began longer ago than clocks may differ.
fn gone_since(object: &Draft, now: Timestamp) -> bool {
    let deleted = time::parse(object.metadata().text("deletionTimestamp")).ok();
    deleted.is_some_and(|at| at.saturating_add(LEEWAY).unwrap_or(at) < now)
}

/// A list of texts as Go prints it with `%q`.
fn go_list(list: &[String]) -> String {
    let list: Vec<String> = list.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", list.join(" "))
}

/// The service account as a user, with what its token says of where it is used.
fn identity(claims: &Claims) -> Identity {
    let bound = &claims.bound;
    let account = &bound.serviceaccount;
    let mut identity = Identity::service_account(&bound.namespace, &account.name)
        .uid(&account.uid)
        .extra(
            "authentication.kubernetes.io/credential-id",
            format!("JTI={}", claims.jti),
        );
    for (word, reference) in [("pod", &bound.pod), ("node", &bound.node)] {
        let Some(reference) = reference else {
            continue;
        };
        let key = format!("authentication.kubernetes.io/{word}");
        identity = identity.extra(format!("{key}-name"), &reference.name);
        if !reference.uid.is_empty() {
            identity = identity.extra(format!("{key}-uid"), &reference.uid);
        }
    }
    identity
}

impl Claims {
    /// The claims of a token for a service account, from `now` on.
    pub(crate) fn new(
        bound: Bound,
        audiences: Vec<String>,
        id: String,
        now: Timestamp,
        seconds: i64,
    ) -> Self {
        let now = now.as_second();
        Self {
            aud: audiences,
            exp: now.saturating_add(seconds),
            iat: now,
            iss: ISSUER.to_owned(),
            jti: id,
            sub: service_account_user(&bound.namespace, &bound.serviceaccount.name),
            bound,
            nbf: now,
        }
    }
}
