//! Validation of service account tokens.

use jiff::{SignedDuration, Timestamp};
use kube_apimachinery::time;
use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::object::{Draft, Key};
use serde_json::{Value, json};

use crate::auth::Identity;
use crate::auth::service_account::{Bound, Claims, ISSUER, TokenUser};
use crate::auth::token::{SigningKey, unverified_claims};
use crate::state::{Access, Reads};

/// Tolerated clock skew: a token is valid this long before and after its lifetime.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// Returns the user of a token signed by this server, if it is valid for one of `audiences`.
///
/// # Errors
///
/// The reason why the token is invalid, or nothing if it is no service account token.
///
/// Upstream: `jwtTokenAuthenticator.AuthenticateToken` and `validator.Validate`.
pub(crate) fn verify_token(
    access: &Access,
    token: &str,
    audiences: &[&str],
) -> Result<TokenUser, Option<String>> {
    let issuer = unverified_claims(token).map(|claims| claims["iss"] == ISSUER);
    if issuer != Some(true) {
        return Err(None);
    }
    let claims = access.token_key().ok().and_then(|key| key.verify(token));
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
    check_claims(access, &claims).map_err(Some)?;
    Ok(TokenUser {
        identity: identity(&claims),
        audiences: meant,
    })
}

/// Checks a token's lifetime and the objects it is bound to.
fn check_claims(access: &Access, claims: &Claims) -> Result<(), String> {
    let now = access.reads.clock().now();
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
    let found = find(&access.reads, "serviceaccounts", namespace, &account.name);
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
        let found = find(&access.reads, storage, namespace, &reference.name);
        let found = found.filter(|found| !gone_since(found, now));
        let found = found.ok_or_else(|| "service account token has been invalidated".to_owned())?;
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

pub(super) fn find(
    reads: &Reads,
    storage: &'static str,
    namespace: &str,
    name: &str,
) -> Option<Draft> {
    let kind = kinds::by_storage(storage)?;
    let object = reads.store.get(&Key::new(kind, namespace, name))?;
    Some(object.draft())
}

/// Returns the public keys for external token validation.
pub(crate) fn token_issuer_keys(access: &Access) -> Value {
    let keys: Vec<Value> = access
        .token_key()
        .ok()
        .map(SigningKey::to_jwk)
        .into_iter()
        .collect();
    json!({"keys": keys})
}

/// Reports whether an object's deletion is older than the clock skew.
fn gone_since(object: &Draft, now: Timestamp) -> bool {
    let deleted = time::parse(object.metadata().text("deletionTimestamp")).ok();
    deleted.is_some_and(|at| at.saturating_add(LEEWAY).unwrap_or(at) < now)
}

/// Formats a list of strings like Go's `%q`.
fn go_list(list: &[String]) -> String {
    let list: Vec<String> = list.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", list.join(" "))
}

/// Returns the service account as a user, with extra values from the token.
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
