//! Service account tokens: signing key and claims.

use std::sync::OnceLock;

use jiff::Timestamp;
use kube_test_control_plane_api::object::Draft;
use serde::{Deserialize, Serialize};

use super::identity::{Identity, service_account_user};
use super::token::{KeyError, SigningKey};

/// The issuer of tokens, and their default audience.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";

/// The signing key of a server, generated on first use.
#[derive(Debug, Default)]
pub(crate) struct TokenKey(OnceLock<Result<SigningKey, KeyError>>);

impl TokenKey {
    pub(crate) fn get(&self) -> Result<&SigningKey, KeyError> {
        let made = self.0.get_or_init(SigningKey::generate);
        made.as_ref().map_err(|err| *err)
    }
}

/// The claims of a token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Claims {
    pub aud: Vec<String>,
    pub exp: i64,
    pub iat: i64,
    pub iss: String,
    pub jti: String,
    #[serde(rename = "kubernetes.io")]
    pub bound: Bound,
    pub nbf: i64,
    pub sub: String,
}

/// The objects to which a token is bound; the deletion of any of them invalidates it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Bound {
    pub namespace: String,
    pub serviceaccount: Reference,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Reference>,
}

/// An object by name and uid.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Reference {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// The user and the audiences of a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenUser {
    pub identity: Identity,
    pub audiences: Vec<String>,
}

impl Reference {
    pub(crate) fn to(object: &Draft) -> Self {
        Self {
            name: object.metadata().name().to_owned(),
            uid: object.metadata().uid().to_owned(),
        }
    }
}

impl Claims {
    /// Returns the claims of a token for a service account, valid from `now`.
    pub(crate) fn new(
        bound: Bound,
        audiences: Vec<String>,
        id: String,
        now: Timestamp,
        seconds: i64,
    ) -> Self {
        let now = now.as_second();
        Self {
            aud: audiences,
            exp: now.saturating_add(seconds),
            iat: now,
            iss: ISSUER.to_owned(),
            jti: id,
            sub: service_account_user(&bound.namespace, &bound.serviceaccount.name),
            bound,
            nbf: now,
        }
    }
}
