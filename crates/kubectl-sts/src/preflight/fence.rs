//! The fence, and whether a provider fixes the flags of the control plane.

use serde_json::Value;
use statefulset_fence::PartKind;
use statefulset_fence::names::{FENCE, MIRROR};

use crate::fence::shipped;
use crate::server::{Server, VALIDATING_POLICIES, VALIDATING_POLICY_BINDINGS, is_not_served};

/// Parts of the versions of API servers whose flags only the provider sets: EKS and GKE. The
/// versions of other providers have no such part.
const HOSTED: [&str; 2] = ["-eks-", "-gke."];

/// The state of the policies.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fence {
    /// None of them exists.
    Absent,
    /// They are not as shipped, for this reason.
    Differs(String),
    /// They are as shipped, for the namespaces with this label.
    Stands(String),
}

/// Reads the policies and their bindings.
pub(super) async fn read(server: &Server) -> anyhow::Result<Fence> {
    let mut parts = Vec::new();
    for (kind, resource) in [
        (PartKind::Policy, VALIDATING_POLICIES),
        (PartKind::Binding, VALIDATING_POLICY_BINDINGS),
    ] {
        for name in [FENCE, MIRROR] {
            match server.get_value(&resource, None, name).await {
                Ok(object) => parts.extend(object.map(|object| (kind, object))),
                Err(error) if is_not_served(&error) => return Ok(Fence::Absent),
                Err(error) => return Err(error),
            }
        }
    }
    if parts.is_empty() {
        return Ok(Fence::Absent);
    }
    let settings = shipped::settings(&parts).unwrap_or_default();
    Ok(match shipped::difference(&settings, &parts)? {
        Some(gap) => Fence::Differs(gap.to_string()),
        None => Fence::Stands(settings.selector.to_string()),
    })
}

/// Reports whether a provider runs the control plane, and fixes its flags. An unknown version counts
/// as none.
pub(super) async fn is_hosted(server: &Server) -> bool {
    let version = server.version().await.unwrap_or_default();
    let version = version.get("gitVersion").and_then(Value::as_str);
    version.is_some_and(|version| HOSTED.iter().any(|part| version.contains(part)))
}
