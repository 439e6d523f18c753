//! A hot set and a wedged one alongside the sets under load.

use std::sync::Arc;

use anyhow::Context as _;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::task::JoinSet;

use super::args::Policy;
use super::requests::Own;
use super::workload::manifest;

/// Name of the set whose pod changes its readiness without pause.
const HOT: &str = "hot";
/// Name of the set whose first pod never becomes ready.
const WEDGED: &str = "wedged";

/// Reports whether the kubelet leaves this pod to the disturbance.
pub(crate) fn is_disturbed(pod: &str) -> bool {
    let set = pod.rsplit_once('-').map(|(set, _)| set);
    set.is_some_and(|set| [HOT, WEDGED].contains(&set))
}

/// Creates both sets, and changes the readiness of the hot one's pod until dropped.
pub(crate) async fn start(
    sets: &Api<StatefulSet>,
    pods: Api<Pod>,
    own: Arc<Own>,
) -> anyhow::Result<JoinSet<()>> {
    for name in [HOT, WEDGED] {
        own.add("create statefulsets");
        let set = serde_json::from_value(manifest(name, Policy::OrderedReady.name(), 3))?;
        let created = sets.create(&PostParams::default(), &set).await;
        created.with_context(|| format!("create the {name} set"))?;
    }
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let pod = format!("{HOT}-0");
        for is_ready in [true, false].into_iter().cycle() {
            own.add("patch pods/status");
            let status = if is_ready { "True" } else { "False" };
            let condition = json!({"type": "Ready", "status": status});
            let patch = json!({"status": {"phase": "Running", "conditions": [condition]}});
            let patch = Patch::Strategic(patch);
            // The pod may not exist yet.
            let _ = pods
                .patch_status(&pod, &PatchParams::default(), &patch)
                .await;
        }
    });
    Ok(tasks)
}
