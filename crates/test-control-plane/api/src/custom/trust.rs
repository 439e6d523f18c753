//! The certificate authorities that a definition trusts.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Returns what is wrong with a bundle, in base64, of the certificates that a webhook is trusted by.
/// None are allowed.
///
/// Upstream: `ValidateCABundle`, without the decoding of certificates
pub(crate) fn fault_of_bundle(bundle: &str) -> Option<&'static str> {
    const NO_PEM: &str = "unable to load root certificates: unable to parse bytes as PEM block";
    let Ok(pem) = STANDARD.decode(bundle) else {
        return Some(NO_PEM);
    };
    let has = |begin: &[u8]| pem.windows(begin.len()).any(|window| window == begin);
    if pem.is_empty() || has(b"-----BEGIN CERTIFICATE-----") {
        None
    } else if has(b"-----BEGIN ") {
        Some("unable to load root certificates: no valid certificate authority data seen")
    } else {
        Some(NO_PEM)
    }
}
