//! Who a request comes from: an identity that this process vouches for, a client certificate, a
//! bearer token, or nobody.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use kube_test_control_plane_api::status::{ApiError, ApiResult};

use crate::auth::{AuthorizationMode, Identity, Peer, Sender, Shown, TOKEN_ISSUER as ISSUER};
use crate::server::ApiServer;

impl ApiServer {
    /// A new bearer token that shows a user, as long as the server runs.
    pub fn issue_token(&self, identity: &Identity) -> String {
        let token = self.new_uid();
        self.issued_tokens().insert(&token, identity.clone());
        token
    }

    /// Who a request comes from.
    ///
    /// # Errors
    ///
    /// 401 for a token that isn't known, and without credentials where everyone who has some may do
    /// everything.
    pub(crate) fn authenticate(
        &self,
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
            let shown = self.token_user(token, &[ISSUER]);
            let shown = shown.map_err(|_| ApiError::unauthorized())?;
            return Ok(Arc::new(shown.identity));
        }
        match sender {
            Sender::Process(identity) if !headers.contains_key(AUTHORIZATION) => {
                Ok(Arc::clone(identity))
            }
            _ if self
                .config()
                .authorization
                .has(AuthorizationMode::AlwaysAllow) =>
            {
                Err(ApiError::unauthorized())
            }
            _ => Ok(Arc::new(Identity::anonymous())),
        }
    }

    /// Whose token it is, if it still counts for one of the audiences.
    ///
    /// # Errors
    ///
    /// Why it doesn't, if there is anything to say.
    pub(crate) fn token_user(
        &self,
        token: &str,
        audiences: &[&str],
    ) -> Result<Shown, Option<String>> {
        let listed = self.config().tokens.get(token).cloned();
        let known = listed.or_else(|| self.issued_tokens().get(token));
        let mut shown = match known {
            // Such tokens say nothing of audiences, so they are meant for this server.
            Some(identity) if audiences.contains(&ISSUER) => Shown {
                identity,
                audiences: vec![ISSUER.to_owned()],
            },
            _ => self.verify_token(token, audiences)?,
        };
        shown.identity = shown.identity.authenticated();
        Ok(shown)
    }
}

/// The token of a header `Authorization: Bearer TOKEN`; other schemes are no credentials here.
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
