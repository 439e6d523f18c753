//! Endpoints for external validation of service account tokens: issuer and public keys.

use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

use crate::access;
use crate::auth::TOKEN_ISSUER;
use crate::reply::{self, Reply};
use crate::state::Access;

/// `/.well-known/openid-configuration`: the issuer and the URL of its keys.
pub(crate) fn open_id_configuration(host: &str) -> Reply {
    let value = json!({
        "issuer": TOKEN_ISSUER,
        "jwks_uri": format!("https://{host}/openid/v1/jwks"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    });
    published(&value, "application/json")
}

/// `/openid/v1/jwks`: the public keys of tokens.
pub(crate) fn token_keys(access: &Access) -> Reply {
    published(
        &access::token_issuer_keys(access),
        "application/jwk-set+json",
    )
}

fn published(value: &Value, media_type: &'static str) -> Reply {
    let mut reply = reply::document(StatusCode::OK, value.to_string());
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    let hour = HeaderValue::from_static("public, max-age=3600");
    headers.insert(CACHE_CONTROL, hour);
    reply
}
