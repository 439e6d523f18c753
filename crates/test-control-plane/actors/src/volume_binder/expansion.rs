//! The expansion of volumes whose claims request more.

use std::sync::Arc;

use kube_apimachinery::time::format_seconds;
use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::members::text_at;
use kube_test_control_plane_api::object::{Key, Object};
use serde_json::{Value, json};

use super::volume::size;
use crate::client::ActorClient;

/// The parameter of a class that names the way in which its volumes grow.
const PARAMETER: &str = "expansion";

/// The condition of a claim whose file system waits for the node.
const PENDING: &str = "FileSystemResizePending";

/// The way in which volumes grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expansion {
    /// While pods use them.
    Online,
    /// The file system grows when a pod starts.
    WithPod,
    /// The provider fails, and tries again.
    Fails,
    /// The provider gives up.
    Infeasible,
}

impl Expansion {
    /// Returns the way of a claim's class.
    pub(super) fn of(client: &ActorClient, claim: &Value) -> Self {
        let name = text_at(claim, "/spec/storageClassName");
        let kind = kinds::by_resource("storage.k8s.io", "v1", "storageclasses");
        let class = kind.and_then(|kind| client.get(&Key::new(kind, "", name)));
        let class = class.map(|class| class.value()).unwrap_or_default();
        match class
            .pointer("/parameters")
            .and_then(|it| it.get(PARAMETER)?.as_str())
        {
            Some("with-pod") => Self::WithPod,
            Some("fails") => Self::Fails,
            Some("infeasible") => Self::Infeasible,
            _ => Self::Online,
        }
    }
}

/// Returns true if the volume of a bound claim is smaller than requested.
pub(super) fn is_due(claim: &Value) -> bool {
    let request = size(claim, "/spec/resources/requests/storage");
    text_at(claim, "/status/phase") == "Bound" && request > size(claim, "/status/capacity/storage")
}

/// Returns the time since which the file system of the claim's volume waits for a pod to start.
pub(super) fn waiting_since(claim: &Value) -> Option<&str> {
    let conditions = claim.pointer("/status/conditions")?.as_array()?;
    let mut conditions = conditions.iter();
    let pending = conditions.find(|it| it["type"] == PENDING)?;
    Some(text_at(pending, "/lastTransitionTime"))
}

/// Takes the next step of an expansion. `remounted` is true if a pod with the claim started since its
/// file system waits for that.
pub(super) async fn expand(
    client: ActorClient,
    object: Arc<Object>,
    way: Expansion,
    remounted: bool,
) -> Option<()> {
    let claim = object.value();
    let (key, uid) = (&object.key, &*object.uid);
    let request = text_at(&claim, "/spec/resources/requests/storage");
    let capacity = json!({"storage": request});
    let now = format_seconds(client.server.now());
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
    let status = match way {
        Expansion::Fails => json!({"conditions": [condition("ControllerResizeError")]}),
        Expansion::Infeasible => {
            json!({"allocatedResourceStatuses": {"storage": "ControllerResizeInfeasible"}})
        }
        Expansion::WithPod if !remounted => json!({"conditions": [condition(PENDING)]}),
        Expansion::Online | Expansion::WithPod => json!({
            "capacity": capacity,
            "conditions": [{"type": PENDING, "$patch": "delete"}],
        }),
    };
    if matches!(way, Expansion::Online | Expansion::WithPod) {
        let volume = Key::of("persistentvolumes", "", text_at(&claim, "/spec/volumeName"));
        let found = client.get(&volume)?;
        let patch = json!({"spec": {"capacity": capacity}});
        if !client.patch(&volume, &found.uid, patch).await {
            return None;
        }
    }
    client.patch_status(key, uid, &status).await.then_some(())
}
