//! Authentication: headers of a trusted proxy, a client certificate, a bearer token, or anonymous.

mod lookup;
mod request_header;
mod token;

use std::sync::Arc;

use http::HeaderMap;
use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use statefulset_client::clock::Clock;

use super::client_ca::ClientCa;
use super::user::User;

pub(crate) use lookup::Lookup;
pub(crate) use request_header::{HeaderNames, RequestHeader};
pub(crate) use token::Tokens;

/// Key of the user attribute that identifies the credential.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Certificates that a client presented in its handshake, its own first.
pub(crate) type Chain = Arc<[CertificateDer<'static>]>;

/// Identifies the user of a request.
///
/// Upstream: `DelegatingAuthenticatorConfig.New`.
pub(crate) struct Authentication {
    /// Users named in headers by a trusted proxy.
    pub(crate) request_header: Option<Arc<RequestHeader>>,
    /// Authorities of accepted client certificates.
    pub(crate) client_ca: Option<Arc<ClientCa>>,
    /// Token reviews. Without them tokens are ignored.
    pub(crate) tokens: Option<Tokens>,
    /// Clock for certificate expiry.
    pub(crate) clock: Arc<dyn Clock>,
}

/// The request has credentials, but none is valid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unauthenticated(pub(crate) String);

impl Authentication {
    /// Returns true if client certificates can identify a user.
    pub(crate) fn wants_certificates(&self) -> bool {
        self.request_header.is_some() || self.client_ca.is_some()
    }

    /// Identifies the user. The first valid credential wins; a request without credentials is the
    /// anonymous user.
    ///
    /// # Errors
    ///
    /// The request has credentials, and none is valid.
    pub(crate) async fn authenticate(
        &self,
        chain: &[CertificateDer<'_>],
        headers: &HeaderMap,
    ) -> Result<User, Unauthenticated> {
        let now = self.clock.now();
        let mut wrong = Vec::new();
        let from_proxy = self.request_header.as_ref();
        match from_proxy.map(|it| it.user(chain, headers, now)) {
            Some(Ok(Some(user))) => return Ok(user.authenticated()),
            Some(Err(error)) => wrong.push(error.to_string()),
            Some(Ok(None)) | None => {}
        }
        let subject = self.client_ca.as_ref().map(|ca| ca.verify(chain, now));
        match subject {
            Some(Ok(Some(subject))) if !subject.common_name.is_empty() => {
                let user = certificate_user(subject, chain.first());
                return Ok(user.authenticated());
            }
            Some(Err(error)) => wrong.push(format!("client certificate: {error}")),
            Some(Ok(_)) | None => {}
        }
        let token = token::bearer(headers).zip(self.tokens.as_ref());
        if let Some((token, tokens)) = token {
            match tokens.user(token).await {
                Ok(user) => return Ok(user.authenticated()),
                Err(error) => wrong.push(error),
            }
        }
        if wrong.is_empty() {
            return Ok(User::anonymous());
        }
        Err(Unauthenticated(wrong.join(", ")))
    }
}

/// Upstream: `CommonNameUserConversion`.
fn certificate_user(
    subject: kube_apimachinery::x509::Subject,
    der: Option<&CertificateDer<'_>>,
) -> User {
    let digest = digest(&SHA256, der.map_or(&[], |der| der.as_ref()));
    let digits: Vec<String> = digest
        .as_ref()
        .iter()
        .map(|it| format!("{it:02x}"))
        .collect();
    let hash = digits.concat();
    User {
        name: subject.common_name,
        uid: subject.uid,
        groups: subject.organizations,
        extra: [(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={hash}")])].into(),
    }
}

#[cfg(test)]
mod tests;
