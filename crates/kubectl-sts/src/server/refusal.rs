//! Errors of requests, with the missing permission if that is the cause.

use std::fmt;

use super::resources::Resource;

/// A response of the API server that is an error.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) code: u16,
    pub(super) message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// The error of a request, with the missing permission if that is the cause.
pub(super) fn explained(
    error: kube::Error,
    verb: &str,
    resource: &Resource,
    namespace: Option<&str>,
) -> anyhow::Error {
    let kube::Error::Api(status) = error else {
        return error.into();
    };
    let refusal = anyhow::Error::new(Refusal {
        code: status.code,
        message: status.message.clone(),
    });
    match status.code {
        403 => {
            let place = resource.place(namespace);
            refusal.context(format!("needs permission to {verb} {place}"))
        }
        _ => refusal,
    }
}

/// True if a list failed because the server doesn't serve the resource.
pub(crate) fn is_not_served(error: &anyhow::Error) -> bool {
    has_code(error, 404)
}

/// True if the version of a list, or of a page, is no longer kept.
pub(super) fn is_expired(error: &anyhow::Error) -> bool {
    has_code(error, 410)
}

fn has_code(error: &anyhow::Error, code: u16) -> bool {
    let refusal = error.downcast_ref::<Refusal>();
    refusal.is_some_and(|refusal| refusal.code == code)
}
