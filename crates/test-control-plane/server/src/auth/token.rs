//! Signed tokens: ES256 JSON web tokens, as clients of service accounts expect.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use serde_json::{Value, json};

/// The key for signing tokens.
pub(crate) struct SigningKey {
    pair: EcdsaKeyPair,
    id: String,
}

/// The system provided no random bytes, or the key was unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to generate or use the token signing key")]
pub(crate) struct KeyError;

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { pair: _, id } = self;
        f.debug_struct("SigningKey").field("id", id).finish()
    }
}

impl SigningKey {
    /// Generates a key.
    ///
    /// # Errors
    ///
    /// The system provides no random bytes.
    pub(crate) fn generate() -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(|_| KeyError)?;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random)
            .map_err(|_| KeyError)?;
        let hash = digest(&SHA256, pair.public_key().as_ref());
        let id = URL_SAFE_NO_PAD.encode(hash);
        Ok(Self { pair, id })
    }

    /// Returns a token with these claims.
    ///
    /// # Errors
    ///
    /// The system provides no random bytes.
    pub(crate) fn sign(&self, claims: &Value) -> Result<String, KeyError> {
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = json!({"alg": "ES256", "kid": self.id});
        let signed = format!("{}.{}", encode(&header), encode(claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(signature.map_err(|_| KeyError)?);
        Ok(format!("{signed}.{signature}"))
    }

    /// Returns the claims of a token signed by this key.
    pub(crate) fn verify(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let header: Value = serde_json::from_slice(&decode(header)?).ok()?;
        if header["alg"] != "ES256" {
            return None;
        }
        let key = self.pair.public_key().as_ref();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key)
            .verify(signed.as_bytes(), &decode(signature)?)
            .ok()?;
        serde_json::from_slice(&decode(claims)?).ok()
    }

    /// Returns the public key for external validation.
    pub(crate) fn to_jwk(&self) -> Value {
        // An uncompressed point: a marker byte, then both coordinates.
        let point = self.pair.public_key().as_ref();
        let (x, y) = point.get(1..).unwrap_or_default().split_at(point.len() / 2);
        json!({
            "use": "sig",
            "kty": "EC",
            "kid": self.id,
            "crv": "P-256",
            "alg": "ES256",
            "x": URL_SAFE_NO_PAD.encode(x),
            "y": URL_SAFE_NO_PAD.encode(y),
        })
    }
}

/// Returns the unverified claims of a token; `None` for other formats.
pub(crate) fn unverified_claims(token: &str) -> Option<Value> {
    let mut parts = token.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tokens_signed_by_the_key_are_verified() {
        let key = SigningKey::generate().unwrap();
        let claims = json!({"sub": "me", "exp": 1});
        let token = key.sign(&claims).unwrap();
        assert_eq!(token.split('.').count(), 3);
        assert_eq!(key.verify(&token), Some(claims.clone()));
        assert_eq!(unverified_claims(&token), Some(claims));
        let other = SigningKey::generate().unwrap();
        assert_eq!(other.verify(&token), None);
        let forged = URL_SAFE_NO_PAD.encode(r#"{"sub":"you"}"#);
        let mut parts: Vec<&str> = token.split('.').collect();
        parts[1] = &forged;
        assert_eq!(key.verify(&parts.join(".")), None);
        for text in ["", "a.b", "a.b.c", "..."] {
            assert_eq!(key.verify(text), None, "{text}");
        }
    }

    #[test]
    fn public_key_has_two_coordinates() {
        let jwk = SigningKey::generate().unwrap().to_jwk();
        for coordinate in ["x", "y"] {
            let bytes = URL_SAFE_NO_PAD.decode(jwk[coordinate].as_str().unwrap());
            assert_eq!(bytes.unwrap().len(), 32);
        }
    }
}
