//! Shapes of revisions as other versions of upstream, or of the API server, would have left
//! them: derived from a recorded cluster, with data, names and references.

use std::collections::BTreeMap;

use anyhow::Context as _;
use kube_apimachinery::json::to_go_string;
use serde_json::{Value, json};
use statefulset_history::{controller_revision_name, hash_controller_revision};

/// Label of a pod with the name of its revision.
const REVISION_LABEL: &str = "controller-revision-hash";
/// Label of a revision with its hash.
const HASH_LABEL: &str = "controller.kubernetes.io/hash";

/// Defaults of a container.
const CONTAINER_DEFAULTS: [(&str, &str); 2] = [
    ("terminationMessagePath", "/dev/termination-log"),
    ("terminationMessagePolicy", "File"),
];
/// Defaults of a pod spec.
const POD_DEFAULTS: [(&str, &str); 3] = [
    ("dnsPolicy", "ClusterFirst"),
    ("restartPolicy", "Always"),
    ("schedulerName", "default-scheduler"),
];

/// Origin of a cluster's revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The recorded version.
    AsRecorded,
    /// v1.33 or older, which writes `"creationTimestamp":null` into the template's metadata.
    V1_33,
    /// v1.33, except for the latest, which a newer version recorded after an upgrade.
    V1_33ThenNewer,
    /// v1.33, after which v1.34.0 recorded the latest template again, because it took its own
    /// encoding for a change, and rolled the pods.
    V1_33ThenV1_34,
    /// A server with fewer defaults than today.
    FewerDefaults,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Self; 5] = [
        Self::AsRecorded,
        Self::V1_33,
        Self::V1_33ThenNewer,
        Self::V1_33ThenV1_34,
        Self::FewerDefaults,
    ];

    /// Converts a recorded cluster to this shape.
    ///
    /// # Errors
    ///
    /// The value is not a cluster with one set.
    pub fn apply(self, cluster: &mut Value) -> anyhow::Result<()> {
        let alter = match self {
            Self::AsRecorded => return Ok(()),
            Self::FewerDefaults => without_defaults,
            Self::V1_33 | Self::V1_33ThenNewer | Self::V1_33ThenV1_34 => with_null_creation_time,
        };
        let set = &cluster["statefulsets"]["items"][0]["metadata"]["name"];
        let set = set.as_str().context("the cluster has no set")?.to_owned();
        let revisions = cluster["controllerrevisions"]["items"].as_array_mut();
        let revisions = revisions.context("the cluster has no revisions")?;
        revisions.sort_by_key(|revision| revision["revision"].as_i64());
        let latest = revisions.last().context("the cluster has no revisions")?;
        let latest = latest.clone();
        if self == Self::V1_33ThenNewer {
            revisions.pop();
        }
        let mut renamed = BTreeMap::new();
        for revision in &mut *revisions {
            let before = revision["metadata"]["name"].to_string();
            alter(&mut revision["data"]["spec"]["template"]);
            rename(revision, &set);
            renamed.insert(before, revision["metadata"]["name"].clone());
        }
        match self {
            Self::V1_33ThenNewer => revisions.push(latest),
            Self::V1_33ThenV1_34 => {
                renamed.remove(&latest["metadata"]["name"].to_string());
                revisions.push(recorded_again(latest));
            }
            _ => {}
        }
        follow(cluster, &renamed);
        Ok(())
    }
}

/// Sets a revision's name and hash from its data.
fn rename(revision: &mut Value, set: &str) {
    let hash = hash_controller_revision(&to_go_string(&revision["data"]), Some(0));
    let metadata = &mut revision["metadata"];
    metadata["name"] = controller_revision_name(set, &hash).into();
    metadata["labels"][HASH_LABEL] = hash.into();
}

/// The same revision with the next number.
fn recorded_again(mut revision: Value) -> Value {
    let number = revision["revision"].as_i64().unwrap_or(0);
    revision["revision"] = (number + 1).into();
    revision["metadata"]["uid"] = "00000000-0000-4000-8000-000000000134".into();
    revision
}

/// Replaces the old names in the status and in pod labels.
fn follow(cluster: &mut Value, renamed: &BTreeMap<String, Value>) {
    let replace = |name: &mut Value| {
        if let Some(new) = renamed.get(&name.to_string()) {
            *name = new.clone();
        }
    };
    for set in items(cluster, "statefulsets") {
        replace(&mut set["status"]["currentRevision"]);
        replace(&mut set["status"]["updateRevision"]);
    }
    for pod in items(cluster, "pods") {
        replace(&mut pod["metadata"]["labels"][REVISION_LABEL]);
    }
}

/// Objects of a list of a cluster; empty if the list is missing.
pub fn items<'a>(cluster: &'a mut Value, list: &str) -> &'a mut [Value] {
    match cluster.get_mut(list).and_then(|list| list.get_mut("items")) {
        Some(Value::Array(items)) => items,
        _ => &mut [],
    }
}

/// Adds the null creation time that versions up to v1.33 wrote.
pub fn with_null_creation_time(template: &mut Value) {
    template["metadata"]["creationTimestamp"] = json!(null);
    let volumes = template.pointer_mut("/spec/volumes");
    for volume in volumes.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(claim) = volume.pointer_mut("/ephemeral/volumeClaimTemplate") {
            claim["metadata"]["creationTimestamp"] = json!(null);
        }
    }
}

/// Removes server-side defaults.
fn without_defaults(template: &mut Value) {
    let Some(spec) = template.get_mut("spec") else {
        return;
    };
    remove_defaults(spec, &POD_DEFAULTS);
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            remove_defaults(container, &CONTAINER_DEFAULTS);
        }
    }
}

fn remove_defaults(object: &mut Value, defaults: &[(&str, &str)]) {
    if let Value::Object(members) = object {
        members.retain(|member, value| {
            !defaults
                .iter()
                .any(|(name, default)| member == name && value.as_str() == Some(default))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cluster with a set, a revision with this data, and a pod of it.
    fn cluster(data: &str) -> Value {
        let revision = json!({
            "metadata": {"name": "web-6bf549676b", "labels": {}}, "revision": 4,
            "data": serde_json::from_str::<Value>(data).unwrap(),
        });
        json!({
            "statefulsets": {"items": [{
                "metadata": {"name": "web"},
                "status": {"currentRevision": "web-1", "updateRevision": "web-6bf549676b"},
            }]},
            "controllerrevisions": {"items": [revision]},
            "pods": {"items": [{"metadata": {"labels": {REVISION_LABEL: "web-6bf549676b"}}}]},
        })
    }

    const NEW: &str = r#"{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"registry.example/web:1","imagePullPolicy":"IfNotPresent","name":"web","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":10}}}}"#;

    fn shaped(shape: Shape) -> Value {
        let mut cluster = cluster(NEW);
        shape.apply(&mut cluster).unwrap();
        cluster
    }

    #[test]
    fn v1_33_shape_has_the_bytes_and_name_of_v1_33() {
        let cluster = shaped(Shape::V1_33);
        let revision = &cluster["controllerrevisions"]["items"][0];
        let old = NEW.replace(
            r#"{"labels":{"app":"web"}}"#,
            r#"{"creationTimestamp":null,"labels":{"app":"web"}}"#,
        );
        assert_eq!(to_go_string(&revision["data"]), old);
        let name = "web-799ffc7d7b";
        assert_eq!(revision["metadata"]["name"], name);
        assert_eq!(revision["metadata"]["labels"][HASH_LABEL], "799ffc7d7b");
        let status = &cluster["statefulsets"]["items"][0]["status"];
        assert_eq!(status["updateRevision"], name);
        assert_eq!(status["currentRevision"], "web-1");
        let pod = &cluster["pods"]["items"][0];
        assert_eq!(pod["metadata"]["labels"][REVISION_LABEL], name);
    }

    #[test]
    fn v1_34_shape_repeats_the_latest_template() {
        let cluster = shaped(Shape::V1_33ThenV1_34);
        let names: Vec<(&Value, &Value)> = cluster["controllerrevisions"]["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|revision| (&revision["metadata"]["name"], &revision["revision"]))
            .collect();
        let (old, new) = (json!("web-799ffc7d7b"), json!("web-6bf549676b"));
        assert_eq!(names, [(&old, &json!(4)), (&new, &json!(5))]);
        let status = &cluster["statefulsets"]["items"][0]["status"];
        assert_eq!(status["updateRevision"], new);
    }

    #[test]
    fn upgrade_shape_keeps_the_latest_revision() {
        assert_eq!(shaped(Shape::V1_33ThenNewer), cluster(NEW));
    }

    #[test]
    fn fewer_defaults_change_the_name() {
        let cluster = shaped(Shape::FewerDefaults);
        let revision = &cluster["controllerrevisions"]["items"][0];
        let data = to_go_string(&revision["data"]);
        assert!(!data.contains("schedulerName"), "{data}");
        assert!(!data.contains("terminationMessage"), "{data}");
        assert!(data.contains("imagePullPolicy"), "{data}");
        assert_ne!(revision["metadata"]["name"], "web-6bf549676b");
    }
}
