//! Users named in headers by a trusted proxy.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::bail;
use http::HeaderMap;
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use rustls::pki_types::CertificateDer;

use crate::serving::client_ca::ClientCa;
use crate::serving::user::User;

/// Names of trusted proxies and of their headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HeaderNames {
    /// Common names of proxies; empty for every certificate of the authority.
    pub(crate) allowed_names: Vec<String>,
    /// Headers with the user name.
    pub(crate) user: Vec<String>,
    /// Headers with the uid.
    pub(crate) uid: Vec<String>,
    /// Headers with the groups.
    pub(crate) groups: Vec<String>,
    /// Prefixes of headers with extra attributes.
    pub(crate) extra_prefixes: Vec<String>,
}

/// Accepts the headers of clients that present a proxy's certificate.
///
/// Upstream: `headerrequest.NewDynamicVerifyOptionsSecure`.
pub(crate) struct RequestHeader {
    ca: Arc<ClientCa>,
    names: RwLock<Arc<HeaderNames>>,
}

impl RequestHeader {
    /// Trusts certificates that the authority signed for an allowed name.
    pub(crate) fn new(ca: Arc<ClientCa>, names: HeaderNames) -> Self {
        Self {
            ca,
            names: RwLock::new(Arc::new(names)),
        }
    }

    /// Authorities of trusted proxies.
    pub(crate) fn ca(&self) -> &Arc<ClientCa> {
        &self.ca
    }

    /// Replaces the names.
    pub(crate) fn set_names(&self, names: HeaderNames) {
        *self.names.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(names);
    }

    /// User that the proxy names; `None` without a certificate or a user name.
    ///
    /// # Errors
    ///
    /// The certificate is not a proxy's.
    ///
    /// Upstream: `requestHeaderAuthRequestHandler.AuthenticateRequest`.
    pub(super) fn user(
        &self,
        chain: &[CertificateDer<'_>],
        headers: &HeaderMap,
        now: Timestamp,
    ) -> anyhow::Result<Option<User>> {
        let names = Arc::clone(&self.names.read().unwrap_or_else(PoisonError::into_inner));
        let Some(proxy) = self.ca.verify(chain, now)? else {
            return Ok(None);
        };
        let allowed = &names.allowed_names;
        if !allowed.is_empty() && !allowed.contains(&proxy.common_name) {
            let name = proxy.common_name;
            bail!("x509: subject with cn={name} is not in the allowed list");
        }
        let user = User {
            name: first(headers, &names.user),
            uid: first(headers, &names.uid),
            groups: all(headers, &names.groups),
            extra: extra(headers, &names.extra_prefixes),
        };
        Ok(Some(user).filter(|user| !user.name.is_empty()))
    }
}

fn values<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter();
    values.filter_map(|value| value.to_str().ok())
}

/// First non-empty value.
fn first(headers: &HeaderMap, names: &[String]) -> String {
    let mut all = names.iter().filter_map(|name| values(headers, name).next());
    all.find(|value| !value.is_empty())
        .unwrap_or_default()
        .to_owned()
}

fn all(headers: &HeaderMap, names: &[String]) -> Vec<String> {
    let all = names.iter().flat_map(|name| values(headers, name));
    all.filter(|value| !value.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Attributes by the rest of a header's name after the prefix, with `%2f` decoded to `/`.
fn extra(headers: &HeaderMap, prefixes: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for prefix in prefixes {
        // Header names are in lower case here.
        let prefix = prefix.to_ascii_lowercase();
        for name in headers.keys() {
            let Some(key) = name.as_str().strip_prefix(prefix.as_str()) else {
                continue;
            };
            let key = percent_decode_str(key)
                .decode_utf8()
                .map_or_else(|_| key.to_owned(), Cow::into_owned);
            let found = values(headers, name.as_str()).map(str::to_owned);
            extra.entry(key).or_default().extend(found);
        }
    }
    extra
}
