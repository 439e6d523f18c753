//! TLS settings of the port.

use std::sync::Arc;

use anyhow::Context as _;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ResolvesServerCert, WebPkiClientVerifier};
use rustls::{
    CipherSuite, DigitallySignedStruct, DistinguishedName, NamedGroup, ProtocolVersion,
    ServerConfig, SignatureScheme, SupportedCipherSuite, SupportedProtocolVersion,
};

/// Allowed TLS parameters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TlsOptions {
    /// Minimum version.
    pub(crate) min_version: ProtocolVersion,
    /// Suites in order of preference; empty for all. Those of TLS 1.3 are always allowed, as in Go.
    pub(crate) cipher_suites: Vec<CipherSuite>,
    /// Key exchanges in order of preference; empty for all.
    pub(crate) groups: Vec<NamedGroup>,
    /// True if the server offers HTTP/2.
    pub(crate) http2: bool,
    /// True if the server requests client certificates.
    pub(crate) client_certificates: bool,
}

/// Crypto provider limited to the allowed algorithms.
pub(crate) fn provider(options: &TlsOptions) -> CryptoProvider {
    let mut provider = rustls::crypto::ring::default_provider();
    if !options.cipher_suites.is_empty() {
        let all = std::mem::take(&mut provider.cipher_suites);
        let (newest, older): (Vec<_>, Vec<_>) = all.into_iter().partition(is_newest);
        let chosen = options
            .cipher_suites
            .iter()
            .filter_map(|wanted| older.iter().find(|suite| suite.suite() == *wanted).copied());
        provider.cipher_suites = newest.into_iter().chain(chosen).collect();
    }
    if !options.groups.is_empty() {
        let all = std::mem::take(&mut provider.kx_groups);
        let chosen = options
            .groups
            .iter()
            .filter_map(|wanted| all.iter().find(|group| group.name() == *wanted).copied());
        provider.kx_groups = chosen.collect();
    }
    provider
}

fn is_newest(suite: &SupportedCipherSuite) -> bool {
    matches!(suite, SupportedCipherSuite::Tls13(_))
}

/// Server configuration of the port.
///
/// # Errors
///
/// No suite or key exchange remains.
///
/// Upstream: `SecureServingInfo.tlsConfig`.
pub(crate) fn server_config(
    options: &TlsOptions,
    provider: Arc<CryptoProvider>,
    certificates: Arc<dyn ResolvesServerCert>,
) -> anyhow::Result<ServerConfig> {
    let older = provider.cipher_suites.iter().any(|it| !is_newest(it));
    let versions: &[&SupportedProtocolVersion] =
        if options.min_version == ProtocolVersion::TLSv1_3 || !older {
            &[&rustls::version::TLS13]
        } else {
            &[&rustls::version::TLS13, &rustls::version::TLS12]
        };
    let verifier: Arc<dyn ClientCertVerifier> = if options.client_certificates {
        Arc::new(AnyCertificate {
            provider: Arc::clone(&provider),
        })
    } else {
        WebPkiClientVerifier::no_client_auth()
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .context("set up TLS")?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(certificates);
    let http2 = options.http2.then(|| b"h2".to_vec());
    let protocols = http2.into_iter().chain([b"http/1.1".to_vec()]);
    config.alpn_protocols = protocols.collect();
    Ok(config)
}

/// Accepts any certificate whose key the client holds. Trust is decided for each request, so that
/// other credentials may be used instead, and authorities may change while a connection is open.
///
/// Upstream: `tls.RequestClientCert`.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // Clients send any certificate they have.
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> TlsOptions {
        TlsOptions {
            min_version: ProtocolVersion::TLSv1_2,
            cipher_suites: Vec::new(),
            groups: Vec::new(),
            http2: true,
            client_certificates: true,
        }
    }

    #[test]
    fn provider_limits_suites_and_groups() {
        let provider = provider(&TlsOptions {
            cipher_suites: vec![
                CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
                CipherSuite::TLS13_AES_128_GCM_SHA256,
            ],
            groups: vec![NamedGroup::secp384r1, NamedGroup::X25519],
            ..options()
        });
        let (newest, older): (Vec<SupportedCipherSuite>, Vec<SupportedCipherSuite>) =
            provider.cipher_suites.iter().copied().partition(is_newest);
        let older: Vec<_> = older.iter().map(SupportedCipherSuite::suite).collect();
        assert_eq!(newest.len(), 3);
        assert_eq!(older, [CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384]);
        let groups: Vec<_> = provider.kx_groups.iter().map(|it| it.name()).collect();
        assert_eq!(groups, [NamedGroup::secp384r1, NamedGroup::X25519]);
    }

    #[test]
    fn alpn_follows_the_options() {
        for (http2, expected) in [(true, &["h2", "http/1.1"][..]), (false, &["http/1.1"])] {
            let options = TlsOptions { http2, ..options() };
            let provider = Arc::new(provider(&options));
            let certificates = super::super::certificate::Certificates::own(
                jiff::Timestamp::UNIX_EPOCH,
                &provider,
            );
            let config =
                server_config(&options, provider, Arc::new(certificates.unwrap())).unwrap();
            assert_eq!(
                config.alpn_protocols,
                expected.iter().map(|it| it.as_bytes()).collect::<Vec<_>>()
            );
        }
    }
}
