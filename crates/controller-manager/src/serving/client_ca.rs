//! Authorities of accepted client certificates.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::Context as _;
use jiff::Timestamp;
use kube_apimachinery::x509::{self, Subject};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use super::certificate::parse_certificates;
use super::files::{FromFiles, Refresh};

/// Authorities, with the verifier of their signatures.
#[derive(Debug)]
pub(crate) struct Authorities(Arc<dyn ClientCertVerifier>);

impl Authorities {
    /// Parses the authorities in a PEM text.
    ///
    /// # Errors
    ///
    /// The text has no certificate, or an invalid one.
    pub(crate) fn parse(pem: &[u8], provider: &Arc<CryptoProvider>) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        for authority in parse_certificates(pem)? {
            roots.add(authority)?;
        }
        let provider = Arc::clone(provider);
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        Ok(Self(builder.build()?))
    }
}

/// The authorities in use.
pub(crate) enum ClientCa {
    /// Authorities from a file.
    File(FromFiles<Authorities>),
    /// Authorities from the cluster; `None` if unknown.
    LookedUp(RwLock<Option<Arc<Authorities>>>),
}

impl ClientCa {
    /// Loads authorities from a file that is reloaded when it changes.
    ///
    /// # Errors
    ///
    /// The file can't be read or is invalid.
    pub(crate) fn file(
        what: &'static str,
        path: &Path,
        provider: &Arc<CryptoProvider>,
    ) -> anyhow::Result<Self> {
        let provider = Arc::clone(provider);
        let made = FromFiles::load(what, vec![path.to_owned()], move |contents| {
            Authorities::parse(&contents.concat(), &provider)
        });
        made.map(Self::File)
    }

    /// Authorities from the cluster, which may change.
    pub(crate) fn looked_up(authorities: Option<Authorities>) -> Self {
        Self::LookedUp(RwLock::new(authorities.map(Arc::new)))
    }

    /// Replaces the authorities from the cluster. Those of a file stay.
    pub(crate) fn set(&self, authorities: Option<Authorities>) {
        if let Self::LookedUp(current) = self {
            let mut current = current.write().unwrap_or_else(PoisonError::into_inner);
            *current = authorities.map(Arc::new);
        }
    }

    fn current(&self) -> Option<Arc<Authorities>> {
        match self {
            Self::File(file) => Some(file.current()),
            Self::LookedUp(current) => current
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
        }
    }

    /// Subject of a client's certificate chain, the client's own certificate first; `None` if no
    /// authority is known.
    ///
    /// # Errors
    ///
    /// The certificate has no trusted signature, has expired, or is not a client certificate.
    pub(crate) fn verify(
        &self,
        chain: &[CertificateDer<'_>],
        now: Timestamp,
    ) -> anyhow::Result<Option<Subject>> {
        let (Some(authorities), Some((own, others))) = (self.current(), chain.split_first()) else {
            return Ok(None);
        };
        let since = now.duration_since(Timestamp::UNIX_EPOCH);
        let since = since.try_into().context("the time of day")?;
        let now = UnixTime::since_unix_epoch(since);
        authorities.0.verify_client_cert(own, others, now)?;
        let subject = x509::subject(own).context("the certificate's subject can't be read")?;
        Ok(Some(subject))
    }
}

impl Refresh for ClientCa {
    fn refresh(&self) {
        if let Self::File(file) = self {
            file.refresh();
        }
    }
}
