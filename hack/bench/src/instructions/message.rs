//! A pod as a protobuf message, the form of its events.

use anyhow::Context as _;
use kube_apimachinery::protobuf::Envelope;
use kube_apimachinery::schema;
use kube_test_control_plane_api::response::represent::protobuf;
use statefulset_client::cache::indexer::CachedObject as _;
use statefulset_controller_util::pod::Pod;

/// The message of one pod.
pub(super) struct PodMessage(Vec<u8>);

impl PodMessage {
    /// Encodes a pod's JSON.
    pub(super) fn new(json: &str) -> anyhow::Result<Self> {
        let found = schema::find_type("Pod").context("the schema has no pods")?;
        let message = protobuf::object(found, json.as_bytes())?;
        Ok(Self(Envelope::read(&message)?.raw.to_vec()))
    }

    /// Decodes the pod.
    pub(super) fn decode(&self) -> anyhow::Result<Pod> {
        let decode = Pod::FROM_PROTOBUF.context("pods are not read from protobuf")?;
        Ok(decode(&self.0)?)
    }
}
