//! Pods as objects of a cache: how they are decoded and indexed.

use statefulset_client::cache::indexer::{CachedObject, FromProtobuf, IndexKey, SharedParts};

use super::{Pod, json, protobuf};
use crate::index::{controller_index_key, orphan_pods_index_key};

impl CachedObject for Pod {
    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }

    const FROM_PROTOBUF: Option<FromProtobuf<Self>> = Some(protobuf::decode);

    fn decode(text: &str) -> Result<Self, serde_json::Error> {
        json::decode(text)
    }

    fn share_parts(&mut self, parts: &SharedParts) {
        if let Some(owner) = &mut self.controller {
            parts.owners.share(owner);
        }
    }

    fn index_values(&self, out: &mut Vec<IndexKey>) {
        // By its controller, or else by the name of the set that could adopt it.
        let set = self.name.parent_name_and_ordinal();
        out.extend(match self.controller.as_deref() {
            Some(owner) => Some(controller_index_key(&self.namespace, Some(owner))),
            None => set.map(|(set, _)| orphan_pods_index_key(&self.namespace, set)),
        });
    }
}
