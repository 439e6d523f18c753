//! What may be told of credentials that could not be had.

use kube::client::AuthError;
use tower::BoxError;

use crate::error::causes;

/// Why there are no credentials, without a word of what a plugin printed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NoCredentials(String);

/// The same error, unless it quotes the output or the surroundings of a credential plugin, where
/// tokens stand; then its gist.
pub(super) fn without_secrets(error: BoxError) -> BoxError {
    let found = causes(error.as_ref()).find_map(|cause| cause.downcast_ref::<AuthError>());
    match found.map(gist) {
        Some(gist) => NoCredentials(gist).into(),
        None => error,
    }
}

fn gist(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecStart(source) => format!("cannot run the credential plugin: {source}"),
        AuthError::AuthExecRun { out, .. } => {
            format!("the credential plugin ended with {}", out.status)
        }
        AuthError::AuthExecParse(_)
        | AuthError::ExecPluginFailed
        | AuthError::MalformedTokenExpirationDate(_)
        | AuthError::ParseTokenKey(_)
        | AuthError::InvalidBearerToken(_) => {
            "the credential plugin gave no credentials that can be used".to_owned()
        }
        AuthError::MissingCommand => "the credential plugin has no command".to_owned(),
        AuthError::AuthExec(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        _ => "the credentials of the kubeconfig cannot be used".to_owned(),
    }
}
