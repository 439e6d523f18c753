//! The certificate authority of a control plane and its certificates.

mod external;

use std::sync::Arc;

use kube_apimachinery::x509::UID_ATTRIBUTE;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

pub use external::certificates;
pub use external::{ClientAuthorities, PemError, ServingCertificate};

use crate::auth::{AUTHENTICATED, Identity};

/// The DNS names and addresses in the server's certificate.
const SERVER_NAMES: [&str; 5] = [
    "localhost",
    "kubernetes",
    "kubernetes.default.svc",
    "127.0.0.1",
    "::1",
];

/// The certificates of a control plane.
#[derive(Clone, Debug)]
pub struct TlsMaterial {
    /// The certificates with which clients verify the server: the generated authority's, or an
    /// external serving certificate's.
    pub ca_pem: String,
    /// The administrator's certificate and key.
    pub admin: ClientCertificate,
    /// The certificate chain of the server.
    pub server_pem: String,
    /// The private key of the server.
    pub server_key_pem: String,
    pub(crate) client_authorities: Option<ClientAuthorities>,
    authority: Arc<CertifiedIssuer<'static, KeyPair>>,
}

/// A client's certificate and its key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientCertificate {
    /// The certificate, as PEM.
    pub pem: String,
    /// The key, as PEM.
    pub key_pem: String,
}

/// A failed generation of a certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// The key or the certificate could not be generated.
    #[error("generating certificates: {0}")]
    Make(#[from] rcgen::Error),
    /// The user does not fit into a certificate, which has room for a name, a uid and one group.
    #[error("a certificate has no room for all groups and extra values of the user {0:?}")]
    TooMuch(String),
}

impl TlsMaterial {
    /// Generates an authority, and certificates for the server and the administrator.
    ///
    /// # Errors
    ///
    /// The keys could not be generated.
    pub fn generate() -> Result<Self, CertificateError> {
        let mut params = CertificateParams::new(Vec::<String>::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, "test-control-plane-ca");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

        let mut params = CertificateParams::new(SERVER_NAMES.map(str::to_owned))?;
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let server = params.signed_by(&key, &authority)?;
        Ok(Self {
            ca_pem: authority.pem(),
            admin: sign(&authority, &Identity::admin())?,
            server_pem: server.pem(),
            server_key_pem: key.serialize_pem(),
            client_authorities: None,
            authority: Arc::new(authority),
        })
    }

    /// Uses another serving certificate.
    #[must_use]
    pub fn serving(mut self, certificate: ServingCertificate) -> Self {
        self.ca_pem.clone_from(&certificate.chain_pem);
        self.server_pem = certificate.chain_pem;
        self.server_key_pem = certificate.key_pem;
        self
    }

    /// Also trusts client certificates of other authorities.
    #[must_use]
    pub fn trusting_client_authorities(mut self, authorities: ClientAuthorities) -> Self {
        self.client_authorities = Some(authorities);
        self
    }

    /// Returns the certificate of the generated authority, which signs the administrator's
    /// certificate.
    pub(crate) fn authority_pem(&self) -> String {
        self.authority.pem()
    }

    /// Returns the certificates of all trusted client authorities.
    pub fn client_ca_pem(&self) -> String {
        let external = self.client_authorities.as_ref();
        self.authority_pem() + external.map_or("", |external| &external.pem)
    }

    /// Generates a certificate for a user.
    ///
    /// # Errors
    ///
    /// The key could not be generated, or the user has too many groups or extra values for a
    /// certificate.
    pub fn client(&self, identity: &Identity) -> Result<ClientCertificate, CertificateError> {
        sign(&self.authority, identity)
    }
}

fn sign(
    authority: &CertifiedIssuer<'static, KeyPair>,
    identity: &Identity,
) -> Result<ClientCertificate, CertificateError> {
    // The server adds this group to every user with a certificate.
    let mut groups = identity.groups.iter().filter(|g| *g != AUTHENTICATED);
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    let name = &mut params.distinguished_name;
    if let Some(group) = groups.next() {
        name.push(DnType::OrganizationName, group);
    }
    if groups.next().is_some() || !identity.extra.is_empty() {
        return Err(CertificateError::TooMuch(identity.name.clone()));
    }
    if !identity.uid.is_empty() {
        let kind = DnType::CustomDnType(UID_ATTRIBUTE.to_vec());
        name.push(kind, &identity.uid);
    }
    name.push(DnType::CommonName, &identity.name);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, authority)?;
    Ok(ClientCertificate {
        pem: certificate.pem(),
        key_pem: key.serialize_pem(),
    })
}
