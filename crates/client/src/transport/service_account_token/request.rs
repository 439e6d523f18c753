//! Requests a token and creates its service account.

use http::HeaderValue;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::json;

use super::name::ServiceAccountName;
use crate::error::Error;
use crate::resource::{NAMESPACES, SERVICE_ACCOUNTS};
use crate::rest::RestClient;

/// Requested lifetime of a token, in seconds. Upstream: `defaultExpirationSeconds`.
const EXPIRATION_SECONDS: u64 = 3600;

/// A token issued by the server.
pub(super) struct Token {
    /// The value of the `Authorization` header.
    pub(super) header: HeaderValue,
    /// Expiration by the server's clock.
    pub(super) expires: Timestamp,
}

#[derive(Deserialize)]
struct TokenRequest {
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    token: String,
    expiration_timestamp: String,
}

/// Creates the account if necessary, and requests a token for it.
pub(super) async fn request_token(
    client: &RestClient,
    account: &ServiceAccountName,
) -> Result<Token, Error> {
    get_or_create(client, account).await?;
    let ServiceAccountName { namespace, name } = account;
    let body = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"audiences": [], "expirationSeconds": EXPIRATION_SECONDS},
    });
    let text = client
        .create_subresource(
            &SERVICE_ACCOUNTS,
            namespace,
            name,
            "token",
            body.to_string(),
        )
        .await?;
    parse(&text).map_err(|source| Error::Decode {
        action: format!("request a token of the service account {account}"),
        source,
    })
}

fn parse(text: &str) -> Result<Token, serde_json::Error> {
    let Status {
        token,
        expiration_timestamp,
    } = serde_json::from_str::<TokenRequest>(text)?.status;
    if token.is_empty() {
        return Err(serde_json::Error::custom("the token is empty"));
    }
    let header = HeaderValue::try_from(format!("Bearer {token}"));
    let mut header = header.map_err(serde_json::Error::custom)?;
    header.set_sensitive(true);
    let expires = expiration_timestamp.parse();
    let expires = expires.map_err(serde_json::Error::custom)?;
    Ok(Token { header, expires })
}

/// Upstream: `getOrCreateServiceAccount`.
async fn get_or_create(client: &RestClient, account: &ServiceAccountName) -> Result<(), Error> {
    let ServiceAccountName { namespace, name } = account;
    match client.get(&SERVICE_ACCOUNTS, namespace, name).await {
        Err(error) if error.is_not_found() => {}
        result => return result.map(drop),
    }
    // A namespace that can't be read may still exist, because reading it may be forbidden.
    let found = client.get(&NAMESPACES, "", namespace).await;
    if found.is_err_and(|error| error.is_not_found()) {
        let body = json!({
            "apiVersion": NAMESPACES.api_version(),
            "kind": NAMESPACES.kind,
            "metadata": {"name": namespace},
        });
        if let Err(error) = client.create(&NAMESPACES, "", body.to_string()).await {
            tracing::debug!(%namespace, %error, "cannot create the namespace");
        }
    }
    let body = json!({
        "apiVersion": SERVICE_ACCOUNTS.api_version(),
        "kind": SERVICE_ACCOUNTS.kind,
        "metadata": {"name": name, "namespace": namespace},
    });
    let created = client
        .create(&SERVICE_ACCOUNTS, namespace, body.to_string())
        .await;
    match created {
        Err(error) if !error.is_already_exists() => Err(error),
        _ => Ok(()),
    }
}
