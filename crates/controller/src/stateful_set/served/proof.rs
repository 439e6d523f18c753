//! The proof that the fence is in force for a namespace.

use statefulset_client::rest::RestClient;
use statefulset_fence::names::SYSTEM_NAMESPACE;
use statefulset_fence::{Policy, Probed};

use crate::metrics::FenceMetrics;

/// The reason why a namespace isn't proved.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unproved {
    /// The API server would accept a probe.
    NotInForce(Policy),
    /// The server's response shows nothing.
    Unclear(String),
}

impl std::fmt::Display for Unproved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotInForce(Policy::Fence) => {
                f.write_str("the fence is not in force in this namespace")
            }
            Self::NotInForce(Policy::Mirror) => {
                write!(f, "the mirror is not in force in {SYSTEM_NAMESPACE}")
            }
            Self::Unclear(reason) => write!(f, "the probe shows nothing: {reason}"),
        }
    }
}

/// Tries the probes: the fence's in the namespace, and the mirror's in the namespace that is never
/// served, if this user may.
///
/// # Errors
///
/// The reason why the namespace isn't proved.
pub(super) async fn prove(
    client: &RestClient,
    namespace: &str,
    metrics: &dyn FenceMetrics,
) -> Result<(), Unproved> {
    let probes = [
        (Policy::Fence, namespace),
        (Policy::Mirror, SYSTEM_NAMESPACE),
    ];
    for (policy, namespace) in probes {
        match policy.probe(client, namespace).await {
            Probed::InForce => metrics.probe_denied(),
            // With permissions in single namespaces only the comparison with the shipped policy
            // counts.
            Probed::Unseen if policy == Policy::Mirror => metrics.probe_denied(),
            other => return Err(unproved(policy, other)),
        }
    }
    Ok(())
}

fn unproved(policy: Policy, probed: Probed) -> Unproved {
    match probed {
        Probed::NotInForce => Unproved::NotInForce(policy),
        Probed::Unclear(reason) => Unproved::Unclear(reason),
        _ => Unproved::Unclear(
            "this program may not create controllerrevisions in the namespace".to_owned(),
        ),
    }
}
