//! Authentication of requests: in-process identity, client certificate, bearer token, or anonymous.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use kube_test_control_plane_api::status::{ApiError, ApiResult};

use super::service_account::verify_token;
use crate::auth::{AuthorizationMode, Identity, Peer, Sender, TOKEN_ISSUER as ISSUER, TokenUser};
use crate::state::Access;

/// Issues a bearer token for a user. It is valid while the server runs.
pub(crate) fn issue_token(access: &Access, identity: &Identity) -> String {
    let token = access.random.new_uid();
    access.issued_tokens.insert(&token, identity.clone());
    token
}

/// Returns the sender of a request.
///
/// # Errors
///
/// 401 for an unknown token, and for missing credentials in mode `AlwaysAllow`.
pub(crate) fn authenticate(
    access: &Access,
    headers: &HeaderMap,
    sender: &Sender,
) -> ApiResult<Arc<Identity>> {
    if let Sender::Peer(Peer {
        certificate: Some(identity),
    }) = sender
    {
        return Ok(Arc::new(identity.clone().authenticated()));
    }
    if let Some(token) = bearer_token(headers) {
        let shown = token_user(access, token, &[ISSUER]);
        let shown = shown.map_err(|_| ApiError::unauthorized())?;
        return Ok(Arc::new(shown.identity));
    }
    match sender {
        Sender::Process(identity) if !headers.contains_key(AUTHORIZATION) => {
            Ok(Arc::clone(identity))
        }
        _ if access.authorization.has(AuthorizationMode::AlwaysAllow) => {
            Err(ApiError::unauthorized())
        }
        _ => Ok(Arc::new(Identity::anonymous())),
    }
}

/// Returns the user of a token that is valid for one of the audiences.
///
/// # Errors
///
/// The reason why the token is invalid, if there is one to report.
pub(crate) fn token_user(
    access: &Access,
    token: &str,
    audiences: &[&str],
) -> Result<TokenUser, Option<String>> {
    let listed = access.tokens.get(token).cloned();
    let known = listed.or_else(|| access.issued_tokens.get(token));
    let mut shown = match known {
        // Such tokens have no audiences, so they are for this server.
        Some(identity) if audiences.contains(&ISSUER) => TokenUser {
            identity,
            audiences: vec![ISSUER.to_owned()],
        },
        _ => verify_token(access, token, audiences)?,
    };
    shown.identity = shown.identity.authenticated();
    Ok(shown)
}

/// Returns the token of a header `Authorization: Bearer TOKEN`; other schemes are ignored.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let mut parts = header.trim().splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_bearer_tokens_are_credentials() {
        for (header, token) in [
            ("Bearer abc", Some("abc")),
            ("bearer abc def", Some("abc")),
            ("  BEARER abc ", Some("abc")),
            ("Basic YTpi", None),
            ("Bearer", None),
            ("Bearer  abc", None),
            ("abc", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_static(header));
            assert_eq!(bearer_token(&headers), token, "{header:?}");
        }
    }
}
