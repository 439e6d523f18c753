//! Pods as JSON.

use std::sync::Arc;

use jiff::Timestamp;
use kube_apimachinery::owner_reference::controller_of;
use kube_apimachinery::pod::{PodPhase, Readiness};
use serde::Deserialize;

use super::{ClaimVolume, Pod};
use crate::decode::{RawMeta, null_managed_fields, or_default, time};

/// Decodes a pod.
pub(super) fn decode(json: &str) -> Result<Pod, serde_json::Error> {
    serde_json::from_str::<RawPod>(&null_managed_fields(json)).map(Pod::from)
}

#[derive(Deserialize)]
struct RawPod {
    metadata: RawMeta,
    #[serde(default, deserialize_with = "or_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "or_default")]
    status: RawStatus,
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
#[serde(default)]
struct RawStatus {
    phase: PodPhase,
    #[serde(deserialize_with = "or_default")]
    conditions: Vec<RawCondition>,
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

impl From<RawPod> for Pod {
    fn from(raw: RawPod) -> Self {
        let ready = raw
            .status
            .conditions
            .iter()
            .find(|c| c.condition_type == "Ready");
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
        }
    }
}
