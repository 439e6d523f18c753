//! Errors about bodies without a readable kind.

use crate::status::ApiError;

/// Maximum number of body bytes in an error.
const SHOWN_MAX: usize = 30;

/// Returns the error for a body without a readable kind. It quotes the beginning of the body.
pub(super) fn unrecognized(kind: &str, why: &str, body: &[u8]) -> ApiError {
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({})",
        beginning(body)
    ))
}

/// Returns the beginning of a body: as text if it may be JSON, else in hexadecimal.
fn beginning(body: &[u8]) -> String {
    let shown = &body[..body.len().min(SHOWN_MAX)];
    let more = if body.len() > SHOWN_MAX { " ..." } else { "" };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(shown)),
        Some(_) => {
            let hex: Vec<String> = shown.iter().map(|b| format!("{b:02x}")).collect();
            format!("{}{more}", hex.concat())
        }
    }
}
