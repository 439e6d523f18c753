//! Dry runs that show whether a policy is in force.

use serde_json::json;
use statefulset_client::error::Error;
use statefulset_client::resource::CONTROLLER_REVISIONS;
use statefulset_client::rest::RestClient;

use crate::names::{FENCE_MESSAGE, FENCE_PROBE, MIRROR_MESSAGE, MIRROR_PROBE};

/// The two policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Denies the built-in controller's writes in the served namespaces.
    Fence,
    /// Denies this program's writes in all others.
    Mirror,
}

/// The result of a dry run.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Probed {
    /// The policy denied the probe: it is in force in this namespace.
    InForce,
    /// The server would store the probe: the policy is not in force.
    NotInForce,
    /// This user lacks the permission to try.
    Unseen,
    /// The server denied or failed the request for another reason.
    Unclear(String),
}

impl Policy {
    /// Returns the message of its denials.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Fence => FENCE_MESSAGE,
            Self::Mirror => MIRROR_MESSAGE,
        }
    }

    /// Returns the name of the object that it denies to every user.
    pub const fn probe_name(self) -> &'static str {
        match self {
            Self::Fence => FENCE_PROBE,
            Self::Mirror => MIRROR_PROBE,
        }
    }

    /// Returns true if this policy denied a request. Other policies may have denied it, too: the
    /// server names only one of them.
    pub fn denied(self, error: &Error) -> bool {
        error.is_forbidden()
            && error
                .status()
                .is_some_and(|status| status.message.ends_with(self.message()))
    }

    /// Tries to create the probe in a namespace, without storing it.
    pub async fn probe(self, client: &RestClient, namespace: &str) -> Probed {
        let revision = json!({
            "apiVersion": CONTROLLER_REVISIONS.api_version(),
            "kind": CONTROLLER_REVISIONS.kind,
            "metadata": {"name": self.probe_name(), "namespace": namespace},
            "revision": 1,
            "data": {},
        });
        let created = client.dry_run_create(&CONTROLLER_REVISIONS, namespace, revision.to_string());
        match created.await {
            Ok(_) => Probed::NotInForce,
            Err(error) if self.denied(&error) => Probed::InForce,
            Err(error) if error.is_missing_right() => Probed::Unseen,
            Err(error) => Probed::Unclear(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denial_is_recognized_by_its_message() {
        let forbidden = |message: &str| Error::api(403, "Forbidden", message);
        let denied = format!(
            "pods \"web-0\" is forbidden: ValidatingAdmissionPolicy 'x' with binding 'y' denied \
             request: {MIRROR_MESSAGE}"
        );
        assert!(Policy::Mirror.denied(&forbidden(&denied)));
        assert!(!Policy::Fence.denied(&forbidden(&denied)));
        let quota = forbidden("pods \"web-0\" is forbidden: exceeded quota");
        assert!(!Policy::Mirror.denied(&quota));
        assert!(!Policy::Mirror.denied(&Error::api(422, "Invalid", denied)));
    }
}
