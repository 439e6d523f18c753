//! Who asks? Headers of a trusted proxy, a client certificate, a bearer token, or nobody that is
//! known.

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

/// Where a user's attributes tell by what they were known.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The certificates that a client has shown in its handshake, its own first.
pub(crate) type Chain = Arc<[CertificateDer<'static>]>;

/// Finds out who asks.
///
/// Upstream: `DelegatingAuthenticatorConfig.New`.
pub(crate) struct Authentication {
    /// Users that a trusted proxy names.
    pub(crate) request_header: Option<Arc<RequestHeader>>,
    /// Whose client certificates are believed.
    pub(crate) client_ca: Option<Arc<ClientCa>>,
    /// Whose token is it? Without this tokens don't count.
    pub(crate) tokens: Option<Tokens>,
    /// When certificates expire.
    pub(crate) clock: Arc<dyn Clock>,
}

/// There are credentials, and nobody they belong to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unauthenticated(pub(crate) String);

impl Authentication {
    /// Whether client certificates are of use.
    pub(crate) fn wants_certificates(&self) -> bool {
        self.request_header.is_some() || self.client_ca.is_some()
    }

    /// Who asks. The first kind of credentials that tells somebody counts; with no credentials it
    /// is the anonymous user.
    ///
    /// # Errors
    ///
    /// There are credentials, and none of them is good.
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
