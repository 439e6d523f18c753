//! External certificates: the serving certificate, and client authorities.

use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// Invalid certificates or keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PemError {
    /// The text contains no certificate.
    #[error("contains no certificate")]
    NoCertificate,
    /// The text contains no private key.
    #[error("contains no private key")]
    NoKey,
    /// The PEM is malformed.
    #[error("invalid PEM: {0}")]
    Pem(#[source] pem::Error),
    /// The key does not match the certificate, or TLS doesn't support it.
    #[error("the certificate can't be used with the key: {0}")]
    Unusable(#[source] rustls::Error),
    /// An authority's certificate is unusable.
    #[error("the certificate of an authority can't be used: {0}")]
    Authority(#[source] rustls::Error),
}

/// The server's certificate chain and key.
#[derive(Clone)]
pub struct ServingCertificate {
    pub(crate) chain_pem: String,
    pub(crate) key_pem: String,
}

impl std::fmt::Debug for ServingCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key is a secret.
        f.debug_struct("ServingCertificate")
            .field("chain_pem", &self.chain_pem)
            .finish_non_exhaustive()
    }
}

impl ServingCertificate {
    /// Parses a certificate chain, the server's first, with the key of the first certificate.
    ///
    /// # Errors
    ///
    /// A part is missing or malformed, or the key does not match.
    pub fn from_pem(chain_pem: &str, key_pem: &str) -> Result<Self, PemError> {
        let chain = certificates(chain_pem)?;
        let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).map_err(|err| match err {
            pem::Error::NoItemsFound => PemError::NoKey,
            other => PemError::Pem(other),
        })?;
        let provider = rustls::crypto::ring::default_provider();
        CertifiedKey::from_der(chain, key, &provider).map_err(PemError::Unusable)?;
        Ok(Self {
            chain_pem: chain_pem.to_owned(),
            key_pem: key_pem.to_owned(),
        })
    }
}

/// Trusted authorities of client certificates.
#[derive(Clone, Debug)]
pub struct ClientAuthorities {
    pub(crate) pem: Arc<str>,
}

impl ClientAuthorities {
    /// Parses the certificates of one or more authorities.
    ///
    /// # Errors
    ///
    /// There are none, or one is malformed.
    pub fn from_pem(pem: &str) -> Result<Self, PemError> {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in certificates(pem)? {
            roots.add(certificate).map_err(PemError::Authority)?;
        }
        Ok(Self { pem: pem.into() })
    }
}

/// Parses the certificates in a text.
pub fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let found = found.map_err(PemError::Pem)?;
    if found.is_empty() {
        return Err(PemError::NoCertificate);
    }
    Ok(found)
}
