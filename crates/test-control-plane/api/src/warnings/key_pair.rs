//! Warnings about the certificate and the key of a secret.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// Returns the warning about data without the blocks that a certificate and its key need. The
/// content of the blocks isn't read.
///
/// Upstream: `warningsForSecret`, `tls.X509KeyPair`.
pub(super) fn warning(secret: &Value) -> Option<String> {
    let decode = |key: &str| {
        let data = secret.get("data").and_then(|data| data.get(key)?.as_str());
        let bytes = STANDARD.decode(data.unwrap_or_default());
        String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
    };
    let [certificate, key] = ["tls.crt", "tls.key"].map(decode);
    of_certificate(&block_types(&certificate)).or_else(|| of_key(&block_types(&key)))
}

fn of_certificate(types: &[&str]) -> Option<String> {
    let why = match types {
        types if types.contains(&"CERTIFICATE") => return None,
        [] => "failed to find any PEM data in certificate input".to_owned(),
        [one] if one.ends_with("PRIVATE KEY") => {
            "failed to find certificate PEM data in certificate input, but did find a private key; \
             PEM inputs may have been switched"
                .to_owned()
        }
        skipped => format!(
            "failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM \
             blocks of the following types: [{}]",
            skipped.join(" ")
        ),
    };
    Some(format!("tls: {why}"))
}

fn of_key(types: &[&str]) -> Option<String> {
    let is_key = |of: &&str| *of == "PRIVATE KEY" || of.ends_with(" PRIVATE KEY");
    let why = match types {
        types if types.iter().any(is_key) => return None,
        [] => "failed to find any PEM data in key input".to_owned(),
        ["CERTIFICATE"] => {
            "found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        skipped => format!(
            "failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after \
             skipping PEM blocks of the following types: [{}]",
            skipped.join(" ")
        ),
    };
    Some(format!("tls: {why}"))
}

/// Returns the types of the PEM blocks in a text.
fn block_types(text: &str) -> Vec<&str> {
    let mut types = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(BEGIN) {
        rest = after;
        let Some((of, body)) = after.split_once(DASHES) else {
            continue;
        };
        let end = format!("{END}{of}{DASHES}");
        let Some((body, after)) = body.split_once(&*end) else {
            continue;
        };
        let digits: String = body.split_ascii_whitespace().collect();
        if !of.contains('\n') && STANDARD.decode(digits).is_ok() {
            types.push(of);
            rest = after;
        }
    }
    types
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn warnings_name_the_types_of_blocks() {
        let block = |of: &str| format!("-----BEGIN {of}-----\nAA==\n-----END {of}-----\n");
        let of = |certificate: &str, key: &str| {
            let [certificate, key] = [certificate, key].map(|text| STANDARD.encode(text));
            let secret = json!({"data": {"tls.crt": certificate, "tls.key": key}});
            warning(&secret).unwrap_or_default()
        };
        let [certificate, key] = ["CERTIFICATE", "RSA PRIVATE KEY"].map(block);
        assert_eq!(of(&certificate, &key), "");
        assert_eq!(
            of("x", &key),
            "tls: failed to find any PEM data in certificate input"
        );
        assert!(of(&key, &key).ends_with("PEM inputs may have been switched"));
        assert!(of(&certificate, &certificate).contains("rather than a key"));
        assert!(of(&block("X"), &key).ends_with("types: [X]"));
    }
}
