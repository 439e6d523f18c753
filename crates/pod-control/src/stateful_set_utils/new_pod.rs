//! Pods before their creation.

use std::sync::{Arc, OnceLock};

use kube_apimachinery::json::{ParseError, object_member, to_go_string, to_raw};
use serde_json::{Map, Value, json};
use statefulset_controller_util::pod::{Pod, REVISION_LABEL};
use statefulset_controller_util::stateful_set::StatefulSet;

use super::identity::{Ordinal, pod_name, update_identity};
use super::storage::update_storage;

#[cfg(test)]
mod tests;

/// Fields of a template's spec that differ between the pods of a set.
const OWN_MEMBERS: [&str; 3] = ["hostname", "subdomain", "volumes"];

/// A missing pod that a set wants; its body is built only at its creation.
#[derive(Clone, Debug)]
pub struct NewPod {
    /// Its ordinal.
    pub ordinal: Ordinal,
    /// Its name.
    pub name: Box<str>,
    /// Name of its revision.
    pub revision: Box<str>,
    /// True if the revision is not the update revision: the sync that creates the pod may delete it
    /// again, and needs the stored pod for that.
    pub is_outdated: bool,
    /// The set at that revision. In a box, because most slots hold no new pod.
    set: Box<StatefulSet>,
    /// The pod from the API server's response, once this sync has created it outdated.
    pub(crate) created: OnceLock<Arc<Pod>>,
}

impl NewPod {
    /// Returns the pod with this ordinal of `set`, which is restored to the revision named
    /// `revision`, the update revision.
    pub fn new(set: &StatefulSet, revision: &str, ordinal: Ordinal) -> Self {
        let name = pod_name(set, ordinal).into();
        Self {
            ordinal,
            name,
            revision: revision.into(),
            is_outdated: false,
            set: Box::new(set.clone()),
            created: OnceLock::new(),
        }
    }

    /// Length of the pod's template.
    pub(crate) fn template_bytes(&self) -> usize {
        self.set.spec.template.json_len()
    }

    /// Returns the body to POST, with the template's unknown fields. Fields of the spec that all
    /// pods share are copied, not parsed.
    ///
    /// # Errors
    ///
    /// The template can't be encoded as JSON.
    pub fn body(&self) -> Result<String, ParseError> {
        let template = self.set.spec.template.members()?;
        let mut spec = template.spec.borrowed();
        let mut own = Map::new();
        for member in OWN_MEMBERS {
            let value = spec.get_parsed(member)?;
            own.extend(value.map(|value| (member.to_owned(), value)));
        }
        let mut pod = self.of_template(template.metadata()?, own.into());
        let own = object_member(&mut pod, "spec");
        for member in OWN_MEMBERS {
            match own.get(member) {
                Some(value) => spec.set(member, to_raw(value)),
                None => drop(spec.remove(member)),
            }
        }
        spec.sort();
        let metadata = to_go_string(object_member(&mut pod, "metadata"));
        Ok(format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{metadata},"spec":{spec},"status":{{}}}}"#
        ))
    }

    /// Returns the pod with a template's metadata and spec.
    ///
    /// Upstream: `newStatefulSetPod`, which returns a typed object.
    fn of_template(&self, mut template_metadata: Value, spec: Value) -> Value {
        // Go writes an empty status too.
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "status": {},
            "metadata": {
                "generateName": format!("{}-", self.set.name()),
                "name": &*self.name,
                "ownerReferences": [self.set.controller_reference()],
            },
        });
        *object_member(&mut pod, "spec") = spec;
        let metadata = object_member(&mut pod, "metadata");
        for member in ["labels", "annotations", "finalizers"] {
            match template_metadata.get_mut(member).map(Value::take) {
                Some(Value::Object(map)) if map.is_empty() => {}
                Some(Value::Array(list)) if list.is_empty() => {}
                Some(Value::Null) | None => {}
                Some(value) => metadata[member] = value,
            }
        }
        update_identity(&mut pod, &self.set, &self.name, self.ordinal);
        let labels = object_member(object_member(&mut pod, "metadata"), "labels");
        labels[REVISION_LABEL] = Value::from(&*self.revision);
        let service = &*self.set.spec.service_name;
        let spec = object_member(&mut pod, "spec");
        spec["hostname"] = Value::from(&*self.name);
        match spec {
            Value::Object(spec) if service.is_empty() => drop(spec.remove("subdomain")),
            spec => spec["subdomain"] = Value::from(service),
        }
        update_storage(&self.set, self.ordinal, &mut pod);
        pod
    }
}
