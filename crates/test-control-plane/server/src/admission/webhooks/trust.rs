//! The verification of a webhook's certificate, as Go does it and with its messages.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use crate::certificates::certificates;

/// Trusts the authorities of a bundle, and the certificates in it as they are.
#[derive(Debug)]
struct Bundle {
    provider: Arc<CryptoProvider>,
    certificates: Vec<CertificateDer<'static>>,
    /// `None` if there are no authorities.
    verifier: Option<Arc<WebPkiServerVerifier>>,
}

/// Returns the TLS configuration of a client that trusts a bundle of certificates as PEM. Without any,
/// it trusts no server.
///
/// # Errors
///
/// A certificate in the bundle can't be used.
pub(super) fn tls_config(bundle: &[u8]) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let text = String::from_utf8_lossy(bundle);
    let certificates = if text.trim().is_empty() {
        Vec::new()
    } else {
        let unusable = "unable to load root certificates: unable to parse bytes as PEM block";
        certificates(&text).map_err(|_| unusable.to_owned())?
    };
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        roots
            .add(certificate.clone())
            .map_err(|error| error.to_string())?;
    }
    let verifier = if roots.is_empty() {
        None
    } else {
        let builder =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        Some(builder.build().map_err(|error| error.to_string())?)
    };
    let verifier = Bundle {
        provider: Arc::clone(&provider),
        certificates,
        verifier,
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = config
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

impl ServerCertVerifier for Bundle {
    fn verify_server_cert(
        &self,
        server: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = match &self.verifier {
            None => Err(CertificateError::UnknownIssuer.into()),
            Some(verifier) => verifier.verify_server_cert(server, intermediates, name, ocsp, now),
        };
        // The other library refuses authorities as servers, Go doesn't.
        let is_other = matches!(
            verified,
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(
                _
            )))
        );
        if is_other && self.certificates.iter().any(|known| known == server) {
            verify_server_name(&ParsedCertificate::try_from(server)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        verified
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Returns Go's text for a failed handshake with a server of this name.
pub(super) fn go_text(error: &rustls::Error, name: &str) -> String {
    match error {
        rustls::Error::InvalidCertificate(why) => {
            let why = of_certificate(why, name);
            format!("tls: failed to verify certificate: x509: {why}")
        }
        rustls::Error::InvalidMessage(_) => {
            "tls: first record does not look like a TLS handshake".to_owned()
        }
        rustls::Error::AlertReceived(alert) => {
            let alert = format!("{alert:?}");
            format!("remote error: tls: {}", in_words(&alert))
        }
        other => format!("tls: {other}"),
    }
}

fn of_certificate(error: &CertificateError, name: &str) -> String {
    match error {
        // The signature is that of another authority with the same name, which Go also mentions.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            not_valid_for(presented, name)
        }
        CertificateError::ExpiredContext { time, not_after } => format!(
            "certificate has expired or is not yet valid: current time {} is after {}",
            rfc3339(*time),
            rfc3339(*not_after)
        ),
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "certificate has expired or is not yet valid: current time {} is before {}",
            rfc3339(*time),
            rfc3339(*not_before)
        ),
        other => other.to_string(),
    }
}

fn not_valid_for(presented: &[String], name: &str) -> String {
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    // The names are in the form `DnsName("a")` or `IpAddress(1.2.3.4)`.
    let valid: Vec<&str> = presented
        .iter()
        .filter_map(|shown| {
            let (of, rest) = shown.split_once('(')?;
            let value = rest.trim_end_matches(')').trim_matches('"');
            ((of == "IpAddress") == is_address).then_some(value)
        })
        .collect();
    match valid.as_slice() {
        [] if is_address => {
            format!("cannot validate certificate for {name} because it doesn't contain any IP SANs")
        }
        [] => format!("certificate is not valid for any names, but wanted to match {name}"),
        valid => format!("certificate is valid for {}, not {name}", valid.join(", ")),
    }
}

fn rfc3339(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_second(seconds).unwrap_or_default();
    kube_apimachinery::time::format_seconds(time)
}

/// Splits a name in camel case into lower-case words.
fn in_words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_reported_as_in_go() {
        let error = |presented: &[&str], name: &str| {
            let presented: Vec<String> = presented.iter().map(|it| (*it).to_owned()).collect();
            not_valid_for(&presented, name)
        };
        let dns = "DnsName(\"a.svc\")";
        assert_eq!(
            error(&[dns], "b.svc"),
            "certificate is valid for a.svc, not b.svc"
        );
        assert_eq!(
            error(&[dns], "127.0.0.1"),
            "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"
        );
        let address = "IpAddress(127.0.0.2)";
        assert_eq!(
            error(&[dns, address], "127.0.0.1"),
            "certificate is valid for 127.0.0.2, not 127.0.0.1"
        );
    }

    #[test]
    fn alerts_are_words() {
        assert_eq!(in_words("HandshakeFailure"), "handshake failure");
    }
}
