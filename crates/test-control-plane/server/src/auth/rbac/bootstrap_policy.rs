//! Default roles and bindings of every cluster, and the schemas and levels of priority that every
//! server has.
//!
//! Upstream: `bootstrappolicy`, with the default feature gates. `bootstrap_policy.json` lacks the
//! roles of components and controllers that do nothing here, such as those of cloud providers.

use std::sync::{Arc, LazyLock};

use kube_test_control_plane_api::kinds::{self, Kind};
use kube_test_control_plane_api::managed_fields::{self, Writer};
use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::validation;
use serde_json::Value;

use super::PolicyRule;
use crate::auth::attributes::Attributes;

/// The role that node authorization gives to every kubelet.
const NODE_ROLE: &str = "system:node";

/// The objects, made once for all servers of the process.
static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let mut objects: Vec<Value> =
        serde_json::from_str(include_str!("bootstrap_policy.json")).unwrap_or_default();
    objects.extend_from_slice(validation::mandatory_flow_control());
    objects.iter_mut().for_each(track);
    objects
});

/// Records the server as the manager of a default object's fields; the time is set when the object
/// is stored.
fn track(object: &mut Value) {
    let Some(kind) = kind_of(object) else {
        return;
    };
    let mut written = object.clone();
    if let Some(members) = written.as_object_mut()
        && members.contains_key("aggregationRule")
    {
        // The aggregation controller writes the rules.
        members.remove("rules");
    }
    let manager = match &*kind.group {
        "rbac.authorization.k8s.io" => "kube-apiserver",
        _ => "api-priority-and-fairness-config-producer-v1",
    };
    let writer = Writer {
        kind,
        subresource: "",
        manager,
        now: "",
    };
    object["metadata"]["managedFields"] = managed_fields::track(&writer, None, &written);
}

fn kind_of(object: &Value) -> Option<&'static Arc<Kind>> {
    kinds::by_kind(object["apiVersion"].as_str()?, object["kind"].as_str()?)
}

/// Permissions of a kubelet.
static NODE_RULES: LazyLock<Vec<PolicyRule>> = LazyLock::new(|| {
    let is_role = |object: &&Value| {
        object["kind"] == "ClusterRole" && object["metadata"]["name"] == NODE_ROLE
    };
    let role = OBJECTS.iter().find(is_role);
    let rules = role.map(|role| role["rules"].clone());
    rules
        .and_then(|rules| serde_json::from_value(rules).ok())
        .unwrap_or_default()
});

/// Returns true if a kubelet may send the request.
pub(crate) fn allows_node(attributes: &Attributes<'_>) -> bool {
    NODE_RULES.iter().any(|rule| rule.allows(attributes))
}

/// The default objects, without uids and times.
pub(crate) fn objects() -> impl Iterator<Item = (&'static Arc<Kind>, Draft)> {
    OBJECTS.iter().filter_map(|object| {
        let draft = Draft {
            value: object.clone(),
            data: None,
        };
        Some((kind_of(object)?, draft))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn bindings_name_existing_roles() {
        let name = |value: &Value| {
            let metadata = &value["metadata"];
            (
                value["kind"].to_string(),
                metadata["namespace"].to_string(),
                metadata["name"].to_string(),
            )
        };
        let names: BTreeSet<_> = OBJECTS.iter().map(name).collect();
        assert_eq!(names.len(), 77, "the names are unique");
        assert_eq!(OBJECTS.len(), 77);
        for binding in OBJECTS.iter().filter(|o| o.get("roleRef").is_some()) {
            let role = &binding["roleRef"];
            let namespace = binding["metadata"]["namespace"].to_string();
            let wanted = (
                role["kind"].to_string(),
                namespace,
                role["name"].to_string(),
            );
            assert!(names.contains(&wanted), "{wanted:?}");
        }
    }

    #[test]
    fn kubelets_have_the_rules_of_their_role() {
        assert_eq!(NODE_RULES.len(), 26);
    }

    #[test]
    fn lists_in_rules_are_sorted() {
        for object in OBJECTS.iter() {
            for rule in object["rules"].as_array().into_iter().flatten() {
                for (member, list) in rule.as_object().into_iter().flatten() {
                    let list: Vec<&str> = list
                        .as_array()
                        .into_iter()
                        .flatten()
                        .filter_map(Value::as_str)
                        .collect();
                    assert!(
                        list.is_sorted(),
                        "{} {member} {list:?}",
                        object["metadata"]["name"]
                    );
                }
            }
        }
    }

    #[test]
    fn default_roles_are_managed_by_the_server() {
        let fields = |kind: &str, name: &str| {
            let is_it = |o: &&Value| o["kind"] == kind && o["metadata"]["name"] == name;
            let managed = &OBJECTS.iter().find(is_it).unwrap()["metadata"]["managedFields"];
            assert_eq!(managed.as_array().unwrap().len(), 1);
            assert_eq!(managed[0]["manager"], "kube-apiserver");
            assert_eq!(managed[0]["operation"], "Update");
            managed[0]["fieldsV1"].clone()
        };
        let metadata = json!({
            "f:annotations": {".": {}, "f:rbac.authorization.kubernetes.io/autoupdate": {}},
            "f:labels": {".": {}, "f:kubernetes.io/bootstrapping": {}},
        });
        assert_eq!(
            fields("ClusterRole", "admin"),
            json!({
                "f:aggregationRule": {".": {}, "f:clusterRoleSelectors": {}},
                "f:metadata": metadata,
            })
        );
        assert_eq!(
            fields("ClusterRole", "cluster-admin"),
            json!({"f:metadata": metadata, "f:rules": {}})
        );
        assert_eq!(
            fields("ClusterRoleBinding", "cluster-admin"),
            json!({"f:metadata": metadata, "f:roleRef": {}, "f:subjects": {}})
        );
    }

    #[test]
    fn aggregated_roles_have_the_rules_of_their_parts() {
        let rules = |name: &str| {
            let found = OBJECTS.iter().find(|o| o["metadata"]["name"] == name);
            found.unwrap()["rules"].as_array().unwrap().clone()
        };
        let (admin, edit, view) = (rules("admin"), rules("edit"), rules("view"));
        assert_eq!(view, rules("system:aggregate-to-view"));
        assert_eq!(edit, [rules("system:aggregate-to-edit"), view].concat());
        assert_eq!(admin, [edit, rules("system:aggregate-to-admin")].concat());
    }
}
