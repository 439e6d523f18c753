//! Serving certificates: from files, reloaded when they change, or self-signed.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::files::{FromFiles, Refresh};

/// Base name of the files in `--cert-dir`, as upstream's.
const PAIR_NAME: &str = "kube-controller-manager";
/// Names in a self-signed certificate. Upstream: `MaybeDefaultWithSelfSignedCerts`.
const OWN_NAMES: [&str; 2] = ["localhost", "127.0.0.1"];
/// Lifetime of a self-signed certificate, in days. Upstream: `maxAge`.
const OWN_DAYS: i64 = 365;

/// A certificate for specific host names.
pub(crate) struct ForNames {
    /// Host names, optionally with a leading wildcard; empty for the names in the certificate.
    pub(crate) names: Vec<String>,
    pub(crate) pair: Arc<FromFiles<CertifiedKey>>,
}

/// Selects the certificate by the host name in the handshake.
///
/// Upstream: `DynamicServingCertificateController`.
pub(crate) struct Certificates {
    default: Source,
    named: Vec<ForNames>,
}

/// Source of the default certificate.
enum Source {
    Files(Arc<FromFiles<CertifiedKey>>),
    Own(Arc<CertifiedKey>),
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

/// A certificate chain and its key, from two files that are reloaded when they change.
///
/// # Errors
///
/// The files can't be read, or don't match.
pub(crate) fn pair(
    certificate: &Path,
    key: &Path,
    provider: &Arc<CryptoProvider>,
) -> anyhow::Result<Arc<FromFiles<CertifiedKey>>> {
    let provider = Arc::clone(provider);
    let files = vec![certificate.to_owned(), key.to_owned()];
    let pair = FromFiles::load("serving certificate", files, move |contents| {
        let [chain, key] = contents else {
            bail!("a certificate and a key are needed");
        };
        certified_key(chain, key, &provider)
    })?;
    Ok(Arc::new(pair))
}

fn certified_key(
    chain: &[u8],
    key: &[u8],
    provider: &CryptoProvider,
) -> anyhow::Result<CertifiedKey> {
    let chain = parse_certificates(chain).context("the certificate file")?;
    let key = PrivateKeyDer::from_pem_slice(key).context("the key file")?;
    CertifiedKey::from_der(chain, key, provider).context("the certificate and its key")
}

/// Parses the certificates in a PEM text; at least one is required.
pub(crate) fn parse_certificates(pem: &[u8]) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>()?;
    ensure!(!certificates.is_empty(), "it contains no certificate");
    Ok(certificates)
}

impl Certificates {
    /// Certificates from files that are reloaded when they change.
    pub(crate) fn from_files(default: Arc<FromFiles<CertifiedKey>>) -> Self {
        Self {
            default: Source::Files(default),
            named: Vec::new(),
        }
    }

    /// A self-signed certificate for this host, valid from an hour ago for a year, with a key that
    /// only this process holds.
    ///
    /// # Errors
    ///
    /// Key generation fails.
    ///
    /// Upstream: `GenerateSelfSignedCertKey`.
    pub(crate) fn own(now: Timestamp, provider: &CryptoProvider) -> anyhow::Result<Self> {
        let (certificate, key) = make(now)?;
        let own = certified_key(certificate.as_bytes(), key.as_bytes(), provider)?;
        Ok(Self {
            default: Source::Own(Arc::new(own)),
            named: Vec::new(),
        })
    }

    /// Adds certificates for specific host names.
    #[must_use]
    pub(crate) fn with_names(mut self, named: Vec<ForNames>) -> Self {
        self.named = named;
        self
    }

    /// Certificate for clients that send no host name.
    #[cfg(test)]
    pub(crate) fn shown_by_default(&self) -> CertificateDer<'static> {
        let shown = self.choose(None);
        let own = shown.end_entity_cert().expect("the chain is not empty");
        own.clone().into_owned()
    }

    /// Certificates to reload from files.
    pub(crate) fn refreshed(&self) -> Vec<Arc<dyn Refresh>> {
        let mut all: Vec<Arc<dyn Refresh>> = Vec::new();
        if let Source::Files(pair) = &self.default {
            all.push(Arc::clone(pair) as Arc<dyn Refresh>);
        }
        let named = self.named.iter().map(|one| Arc::clone(&one.pair));
        all.extend(named.map(|pair| pair as Arc<dyn Refresh>));
        all
    }

    /// Certificate for a name: the first match, else the default.
    fn choose(&self, name: Option<&str>) -> Arc<CertifiedKey> {
        let named = name.and_then(|name| {
            let exact = |one: &&ForNames| one.matches(|own| own.eq_ignore_ascii_case(name));
            let wild = |one: &&ForNames| one.matches(|own| is_under(own, name));
            let mut all = self.named.iter();
            all.clone().find(exact).or_else(|| all.find(wild))
        });
        match (named, &self.default) {
            (Some(one), _) => one.pair.current(),
            (None, Source::Files(pair)) => pair.current(),
            (None, Source::Own(pair)) => Arc::clone(pair),
        }
    }
}

impl ForNames {
    fn matches(&self, matches: impl Fn(&str) -> bool) -> bool {
        if !self.names.is_empty() {
            return self.names.iter().any(|name| matches(name));
        }
        let pair = self.pair.current();
        let certificate = pair.end_entity_cert().ok();
        let parsed = certificate.and_then(|it| webpki::EndEntityCert::try_from(it).ok());
        parsed.is_some_and(|parsed| parsed.valid_dns_names().any(&matches))
    }
}

/// Returns true if a leading wildcard matches a name; it covers exactly one label.
fn is_under(wildcard: &str, name: &str) -> bool {
    let (Some(parent), Some((_, rest))) = (wildcard.strip_prefix("*."), name.split_once('.'))
    else {
        return false;
    };
    parent.eq_ignore_ascii_case(rest)
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.choose(hello.server_name()))
    }
}

/// Paths of the folder's certificate and key; creates both if neither exists.
///
/// # Errors
///
/// Only one of the two exists, or they can't be written.
///
/// Upstream: `MaybeDefaultWithSelfSignedCerts`, `CanReadCertAndKey`.
pub(crate) fn pair_in(folder: &Path, now: Timestamp) -> anyhow::Result<(PathBuf, PathBuf)> {
    let certificate = folder.join(format!("{PAIR_NAME}.crt"));
    let key = folder.join(format!("{PAIR_NAME}.key"));
    match (certificate.exists(), key.exists()) {
        (true, true) => {}
        (true, false) => bail!(
            "{} exists without {}: remove it, or add the key",
            certificate.display(),
            key.display()
        ),
        (false, true) => bail!(
            "{} exists without {}: remove it, or add the certificate",
            key.display(),
            certificate.display()
        ),
        (false, false) => {
            let (made_certificate, made_key) = make(now)?;
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make the folder {}", folder.display()))?;
            write(&key, &made_key, 0o600)?;
            write(&certificate, &made_certificate, 0o644)?;
            tracing::info!(
                certificate = %certificate.display(),
                key = %key.display(),
                "generated a self-signed certificate"
            );
        }
    }
    Ok((certificate, key))
}

fn write(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let written = options
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Creates a self-signed certificate and its key, as PEM.
fn make(now: Timestamp) -> anyhow::Result<(String, String)> {
    let mut params = CertificateParams::new(OWN_NAMES.map(str::to_owned))?;
    let name = format!("{}@{}", OWN_NAMES[0], now.as_second());
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // The library accepts whole days only.
    let begin = now.checked_sub(1.hour())?.to_zoned(TimeZone::UTC).date();
    let end = begin.checked_add(OWN_DAYS.days())?;
    let day = |date: jiff::civil::Date| -> anyhow::Result<_> {
        let (month, day) = (u8::try_from(date.month())?, u8::try_from(date.day())?);
        Ok(rcgen::date_time_ymd(i32::from(date.year()), month, day))
    };
    params.not_before = day(begin)?;
    params.not_after = day(end)?;
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

#[cfg(test)]
mod tests;
