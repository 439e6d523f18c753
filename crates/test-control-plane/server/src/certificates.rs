//! The certificate authority of a control plane, and the certificates that it signs.

mod given;

use std::sync::Arc;

use kube_apimachinery::x509::UID_ATTRIBUTE;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

pub use given::certificates;
pub use given::{ClientAuthorities, PemError, ServingCertificate};

use crate::auth::{AUTHENTICATED, Identity};

/// The names under which clients may find the server.
const SERVER_NAMES: [&str; 5] = [
    "localhost",
    "kubernetes",
    "kubernetes.default.svc",
    "127.0.0.1",
    "::1",
];

/// The certificates of one control plane.
#[derive(Clone, Debug)]
pub struct TlsMaterial {
    /// The certificates by which clients know the server: that of the authority here, or what the
    /// server shows if that came from outside.
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
pub struct ClientCertificate {
    /// The certificate, as PEM.
    pub pem: String,
    /// The key, as PEM.
    pub key_pem: String,
}

/// A certificate can't be made.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The key or the certificate can't be made.
    #[error("making certificates: {0}")]
    Make(#[from] rcgen::Error),
    /// A certificate can't say all that is to be said of the user: it has room for a name, a uid
    /// and one group.
    #[error("a certificate has no room for all groups and extra values of the user {0:?}")]
    TooMuch(String),
}

impl TlsMaterial {
    /// Makes an authority, and certificates for the server and the administrator.
    ///
    /// # Errors
    ///
    /// The keys can't be made.
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

    /// Lets the server show another certificate.
    #[must_use]
    pub fn serving(mut self, certificate: ServingCertificate) -> Self {
        self.ca_pem.clone_from(&certificate.chain_pem);
        self.server_pem = certificate.chain_pem;
        self.server_key_pem = certificate.key_pem;
        self
    }

    /// Lets the server also believe client certificates of other authorities.
    #[must_use]
    pub fn believing(mut self, authorities: ClientAuthorities) -> Self {
        self.client_authorities = Some(authorities);
        self
    }

    /// The certificate of the authority here, which signs the administrator's.
    pub(crate) fn authority_pem(&self) -> String {
        self.authority.pem()
    }

    /// The certificates of all authorities whose signature on a client's is believed.
    pub fn client_ca_pem(&self) -> String {
        let given = self.client_authorities.as_ref();
        self.authority_pem() + given.map_or("", |given| &given.pem)
    }

    /// A certificate for a user.
    ///
    /// # Errors
    ///
    /// The key can't be made, or the user has more groups or extra values than a certificate made
    /// here can name.
    pub fn client(&self, identity: &Identity) -> Result<ClientCertificate, CertificateError> {
        sign(&self.authority, identity)
    }
}

fn sign(
    authority: &CertifiedIssuer<'static, KeyPair>,
    identity: &Identity,
) -> Result<ClientCertificate, CertificateError> {
    // The server puts everyone with a certificate into that group.
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
