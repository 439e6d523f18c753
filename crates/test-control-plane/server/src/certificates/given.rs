//! Certificates from outside: the server's own, and those of authorities that sign clients.

use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// Why certificates or keys can't be used.
#[derive(Debug, thiserror::Error)]
pub enum PemError {
    /// There is no certificate where one should be.
    #[error("there is no certificate in it")]
    NoCertificate,
    /// There is no private key where one should be.
    #[error("there is no private key in it")]
    NoKey,
    /// The text between the markers is broken.
    #[error("it is no valid PEM: {0}")]
    Pem(pem::Error),
    /// The key is another one's, or nothing that TLS can use.
    #[error("the certificate can't be used with the key: {0}")]
    Unusable(rustls::Error),
    /// An authority's certificate can't be used.
    #[error("the certificate of an authority can't be used: {0}")]
    Authority(rustls::Error),
}

/// The certificate that the server shows, and its key.
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
    /// Takes a chain of certificates, the server's first, and the key of the first.
    ///
    /// # Errors
    ///
    /// One of them is missing or broken, or they don't belong together.
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

/// Authorities whose signature on a client's certificate is believed.
#[derive(Clone, Debug)]
pub struct ClientAuthorities {
    pub(crate) pem: Arc<str>,
}

impl ClientAuthorities {
    /// Takes the certificates of one or more authorities.
    ///
    /// # Errors
    ///
    /// There is none, or one is broken.
    pub fn from_pem(pem: &str) -> Result<Self, PemError> {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in certificates(pem)? {
            roots.add(certificate).map_err(PemError::Authority)?;
        }
        Ok(Self { pem: pem.into() })
    }
}

/// The certificates in a text.
pub fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let found = found.map_err(PemError::Pem)?;
    if found.is_empty() {
        return Err(PemError::NoCertificate);
    }
    Ok(found)
}
