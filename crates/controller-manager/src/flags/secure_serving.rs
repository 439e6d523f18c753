//! Serving flags of the program's own endpoints.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use clap::ArgAction;
use rustls::{CipherSuite, NamedGroup, ProtocolVersion};

use super::values::{self, OptionalPath};

/// Cipher suites in order of preference; empty for the defaults.
pub(crate) type CipherSuites = Vec<CipherSuite>;
/// Key exchanges in order of preference; empty for the defaults.
pub(crate) type NamedGroups = Vec<NamedGroup>;

/// A certificate for specific host names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SniCertKey {
    /// Path of the certificate chain.
    pub(crate) certificate: PathBuf,
    /// Path of the private key.
    pub(crate) key: PathBuf,
    /// Host names, optionally with a leading wildcard; empty for the names in the certificate.
    pub(crate) names: Vec<String>,
}

/// Upstream: `SecureServingOptions`.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the text is that of the help")]
#[command(next_help_heading = "Secure serving flags")]
pub(crate) struct SecureServingFlags {
    /// Address to listen on; 0.0.0.0, :: or an empty value for all interfaces
    #[arg(long, value_name = "ip", default_value = "0.0.0.0", value_parser = values::ip)]
    pub(crate) bind_address: IpAddr,

    /// Port for health, metrics and configuration, over TLS with authentication and authorization;
    /// 0 for none
    #[arg(long, value_name = "int", default_value = "10257", value_parser = values::int)]
    pub(crate) secure_port: i32,

    /// Folder of the certificate kube-controller-manager.crt and its key, which are created if
    /// missing. Without it a certificate is created in memory. --tls-cert-file overrides it
    #[arg(long, value_name = "string", default_value = "", value_parser = values::path)]
    pub(crate) cert_dir: OptionalPath,

    /// File with the certificate chain; reloaded when it changes
    #[arg(long, value_name = "string", default_value = "", value_parser = values::path)]
    pub(crate) tls_cert_file: OptionalPath,

    /// File with the private key of --tls-cert-file
    #[arg(long, value_name = "string", default_value = "", value_parser = values::path)]
    pub(crate) tls_private_key_file: OptionalPath,

    /// Certificate and key for specific host names, as cert,key or cert,key:name,*.name; may be
    /// repeated
    #[arg(long, value_name = "namedCertKey", action = ArgAction::Append, value_parser = sni_cert_key)]
    pub(crate) tls_sni_cert_key: Vec<SniCertKey>,

    /// Minimum TLS version: VersionTLS12 or VersionTLS13
    #[arg(long, value_name = "string", default_value = "VersionTLS12", value_parser = tls_version)]
    pub(crate) tls_min_version: ProtocolVersion,

    /// Cipher suites in order of preference, empty for all:
    /// TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256,
    /// TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    /// TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    /// TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
    #[arg(long, value_name = "strings", default_value = "", value_parser = cipher_suites)]
    pub(crate) tls_cipher_suites: CipherSuites,

    /// Key exchanges in order of preference, by number, empty for all: 23 (P-256), 24 (P-384), 29
    /// (X25519)
    #[arg(long, value_name = "strings", default_value = "", value_parser = curve_preferences)]
    pub(crate) tls_curve_preferences: NamedGroups,

    /// Serve HTTP/1.1 only
    #[arg(long, value_name = "bool", action = ArgAction::Set, default_value = "false", value_parser = values::boolean)]
    pub(crate) disable_http2_serving: bool,

    /// Maximum concurrent requests per HTTP/2 connection; 0 for the server's default
    #[arg(long, value_name = "int", default_value = "0", value_parser = values::unsigned)]
    pub(crate) http2_max_streams_per_connection: u32,

    /// Accepted for compatibility; the port is always bound with SO_REUSEADDR, so it doesn't wait
    /// for lingering sockets of an earlier process
    #[arg(long, value_name = "bool", action = ArgAction::Set, default_value = "false", value_parser = values::boolean)]
    pub(crate) permit_address_sharing: bool,

    /// Bind with SO_REUSEPORT, so that several processes can share the port
    #[arg(long, value_name = "bool", action = ArgAction::Set, default_value = "false", value_parser = values::boolean)]
    pub(crate) permit_port_sharing: bool,
}

impl SecureServingFlags {
    /// Validates the port, and that certificate and key are given together.
    ///
    /// # Errors
    ///
    /// The first violated rule.
    ///
    /// Upstream: `SecureServingOptions.Validate`.
    pub(crate) fn validate(&self) -> anyhow::Result<()> {
        let port = self.secure_port;
        ensure!(
            u16::try_from(port).is_ok(),
            "--secure-port {port} must be between 0 and 65535, inclusive. \
             0 for turning off secure port"
        );
        ensure!(
            self.tls_cert_file.is_some() == self.tls_private_key_file.is_some(),
            "--tls-cert-file and --tls-private-key-file must be given together"
        );
        Ok(())
    }

    /// The port; `None` if the flag is 0.
    pub(crate) fn port(&self) -> Option<u16> {
        u16::try_from(self.secure_port)
            .ok()
            .filter(|port| *port != 0)
    }
}

/// Upstream: `NamedCertKey.Set`.
fn sni_cert_key(text: &str) -> Result<SniCertKey, &'static str> {
    let (files, names) = text.split_once(':').unwrap_or((text, ""));
    let two = files.split_once(',').filter(|(certificate, key)| {
        !certificate.trim().is_empty() && !key.trim().is_empty() && !key.contains(',')
    });
    let (certificate, key) =
        two.ok_or("expected comma separated certificate and key file paths")?;
    Ok(SniCertKey {
        certificate: certificate.trim().into(),
        key: key.trim().into(),
        names: values::split(names)
            .map(|name| name.trim().to_owned())
            .collect(),
    })
}

/// Upstream: `TLSVersion`.
fn tls_version(text: &str) -> Result<ProtocolVersion, String> {
    match text {
        "" | "VersionTLS12" => Ok(ProtocolVersion::TLSv1_2),
        "VersionTLS13" => Ok(ProtocolVersion::TLSv1_3),
        "VersionTLS10" | "VersionTLS11" => {
            Err("must be VersionTLS12 or VersionTLS13; older versions are not safe".to_owned())
        }
        _ => Err(format!("unknown tls version {text:?}")),
    }
}

/// Upstream: `TLSCipherSuites`.
fn cipher_suites(text: &str) -> Result<CipherSuites, String> {
    values::split(text)
        .map(|name| {
            cipher_suite(name)
                .with_context(|| format!("Cipher suite {name} not supported or doesn't exist"))
                .map_err(|err| err.to_string())
        })
        .collect()
}

/// Cipher suites by Go's names; two have an older and a newer name.
fn cipher_suite(name: &str) -> Option<CipherSuite> {
    let suite = match name {
        "TLS_AES_128_GCM_SHA256" => CipherSuite::TLS13_AES_128_GCM_SHA256,
        "TLS_AES_256_GCM_SHA384" => CipherSuite::TLS13_AES_256_GCM_SHA384,
        "TLS_CHACHA20_POLY1305_SHA256" => CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256" => {
            CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
        }
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384" => {
            CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
        }
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"
        | "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256" => {
            CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
        }
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256" => {
            CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
        }
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384" => {
            CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
        }
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305" | "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256" => {
            CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
        }
        _ => return None,
    };
    Some(suite)
}

fn curve_preferences(text: &str) -> Result<NamedGroups, &'static str> {
    values::split(text)
        .map(|number| match number.trim() {
            "23" => Ok(NamedGroup::secp256r1),
            "24" => Ok(NamedGroup::secp384r1),
            "29" => Ok(NamedGroup::X25519),
            _ => Err("must be numbers of key exchanges: 23 (P-256), 24 (P-384), 29 (X25519)"),
        })
        .collect()
}
