//! Pods as JSON.

use std::sync::Arc;

use jiff::Timestamp;
use kube_apimachinery::owner_reference::controller_of;
use kube_apimachinery::pod::{PodPhase, Readiness};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::unready::{ContainerTrouble, Unready};
use super::{ClaimVolume, Pod};
use crate::decode::{RawMeta, null_managed_fields, or_default, time};

/// Decodes a pod.
pub(super) fn decode(json: &str) -> Result<Pod, serde_json::Error> {
    serde_json::from_str::<RawPod<'_>>(&null_managed_fields(json)).map(Pod::from)
}

#[derive(Deserialize)]
struct RawPod<'a> {
    metadata: RawMeta,
    #[serde(default, deserialize_with = "or_default")]
    spec: RawSpec,
    #[serde(default, borrow, deserialize_with = "or_default")]
    status: RawStatus<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawSpec {
    #[serde(deserialize_with = "or_default")]
    volumes: Vec<RawVolume>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawVolume {
    name: Box<str>,
    persistent_volume_claim: Option<RawClaimSource>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawClaimSource {
    claim_name: Box<str>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus<'a> {
    phase: PodPhase,
    #[serde(deserialize_with = "or_default")]
    conditions: Vec<RawCondition>,
    /// Read only if the pod isn't ready.
    #[serde(borrow)]
    init_container_statuses: Option<&'a RawValue>,
    #[serde(borrow)]
    container_statuses: Option<&'a RawValue>,
}

impl RawStatus<'_> {
    fn trouble(&self) -> Option<ContainerTrouble> {
        let lists = [self.init_container_statuses, self.container_statuses];
        lists.into_iter().flatten().find_map(|list| {
            // An unreadable list tells nothing; upstream's decisions don't need it.
            let containers: Vec<RawContainer> = serde_json::from_str(list.get()).ok()?;
            containers.iter().find_map(|container| {
                let waiting = container.state.waiting.as_ref()?;
                ContainerTrouble::of_waiting(&waiting.reason)
            })
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawContainer {
    #[serde(deserialize_with = "or_default")]
    state: RawContainerState,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawContainerState {
    waiting: Option<RawWaiting>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawWaiting {
    #[serde(deserialize_with = "or_default")]
    reason: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawCondition {
    #[serde(rename = "type")]
    condition_type: String,
    status: String,
    #[serde(deserialize_with = "time")]
    last_transition_time: Option<Timestamp>,
}

impl From<RawPod<'_>> for Pod {
    fn from(raw: RawPod<'_>) -> Self {
        let ready = raw
            .status
            .conditions
            .iter()
            .find(|c| c.condition_type == "Ready");
        let unready = ready.is_none_or(|condition| condition.status != "True");
        let unready = unready.then(|| {
            let since = ready.and_then(|condition| condition.last_transition_time);
            Box::new(Unready {
                since: since.or(raw.metadata.creation_timestamp),
                trouble: raw.status.trouble(),
            })
        });
        let claim_volumes = raw.spec.volumes.into_iter().filter_map(|volume| {
            let claim_name = volume.persistent_volume_claim?.claim_name;
            Some(ClaimVolume {
                name: volume.name,
                claim_name,
            })
        });
        Self {
            controller: controller_of(&raw.metadata.owner_references)
                .cloned()
                .map(Arc::new),
            name: raw.metadata.name.into(),
            namespace: raw.metadata.namespace,
            uid: raw.metadata.uid,
            resource_version: raw.metadata.resource_version,
            labels: raw.metadata.labels,
            deletion_timestamp: raw.metadata.deletion_timestamp,
            claim_volumes: claim_volumes.collect(),
            phase: raw.status.phase,
            readiness: ready.map_or_else(Readiness::default, |condition| Readiness {
                ready: condition.status == "True",
                last_transition_time: condition.last_transition_time,
            }),
            unready,
        }
    }
}
