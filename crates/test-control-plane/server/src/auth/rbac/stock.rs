//! The roles and bindings that every cluster has from its start.
//!
//! Upstream: `bootstrappolicy`, with the default feature gates. Left out are the roles of
//! components and controllers that have nothing to do here, such as those of cloud providers.

mod bindings;
mod components;
mod controllers;
mod users;

use std::sync::LazyLock;

use kube_test_control_plane_api::kinds::{self, Kind};
use kube_test_control_plane_api::managed_fields::Writer;
use kube_test_control_plane_api::object::Draft;
use serde_json::{Value, json};

use super::PolicyRule;
use crate::auth::attributes::Attributes;

/// What a role may be written of.
#[derive(Clone, Copy)]
struct Rule {
    verbs: &'static [&'static str],
    groups: &'static [&'static str],
    resources: &'static [&'static str],
    names: &'static [&'static str],
    urls: &'static [&'static str],
}

/// A role of the cluster, or of a namespace.
struct Role {
    namespace: &'static str,
    name: &'static str,
    /// The aggregated role that takes up this one's rules: `admin`, `edit` or `view`.
    part_of: Option<&'static str>,
    /// Whether it is such a role.
    aggregates: bool,
    rules: &'static [Rule],
}

/// A binding to the role of the same scope.
struct Binding<'a> {
    namespace: &'a str,
    name: &'a str,
    role: &'a str,
    subjects: &'a [Subject],
}

/// Who is bound.
enum Subject {
    User(&'static str),
    Group(&'static str),
    /// A service account of `kube-system`.
    Account(&'static str),
}

const CORE: &[&str] = &[""];
const READ: &[&str] = &["get", "list", "watch"];
const LIST_WATCH: &[&str] = &["list", "watch"];

/// What everyone who reports events needs.
const EVENTS: Rule = Rule {
    groups: &["", "events.k8s.io"],
    ..on(&["create", "patch", "update"], CORE, &["events"])
};

const fn on(
    verbs: &'static [&'static str],
    groups: &'static [&'static str],
    resources: &'static [&'static str],
) -> Rule {
    Rule {
        verbs,
        groups,
        resources,
        names: &[],
        urls: &[],
    }
}

const fn paths(urls: &'static [&'static str]) -> Rule {
    Rule {
        urls,
        ..on(&["get"], &[], &[])
    }
}

const fn role(name: &'static str, rules: &'static [Rule]) -> Role {
    Role {
        namespace: "",
        name,
        part_of: None,
        aggregates: false,
        rules,
    }
}

impl Rule {
    fn to_policy(self) -> PolicyRule {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        PolicyRule {
            verbs: list(self.verbs),
            api_groups: list(self.groups),
            resources: list(self.resources),
            resource_names: list(self.names),
            non_resource_urls: list(self.urls),
        }
    }
}

impl Role {
    fn to_value(&self) -> Value {
        let mut rules: Vec<PolicyRule> = Vec::new();
        self.collect(&mut rules);
        let (kind, mut metadata) = common("Role", self.namespace, self.name);
        if let Some(part_of) = self.part_of {
            metadata["labels"][aggregation_label(part_of)] = json!("true");
        }
        let mut value = object(&kind, &metadata);
        value["rules"] = json!(rules);
        if self.aggregates {
            value["aggregationRule"] = json!({"clusterRoleSelectors": [
                {"matchLabels": {(aggregation_label(self.name)): "true"}},
            ]});
        }
        value
    }

    /// Adds the rules, which of an aggregated role are those of its parts.
    fn collect(&self, rules: &mut Vec<PolicyRule>) {
        rules.extend(self.rules.iter().map(|rule| rule.to_policy()));
        if self.aggregates {
            let mut parts: Vec<&Self> = users::ROLES
                .iter()
                .filter(|part| part.part_of == Some(self.name))
                .collect();
            parts.sort_by_key(|part| part.name);
            for part in parts {
                part.collect(rules);
            }
        }
    }
}

fn aggregation_label(role: &str) -> String {
    format!("rbac.authorization.k8s.io/aggregate-to-{role}")
}

impl Binding<'_> {
    fn to_value(&self) -> Value {
        let (kind, metadata) = common("RoleBinding", self.namespace, self.name);
        let mut value = object(&kind, &metadata);
        value["roleRef"] = json!({
            "apiGroup": GROUP,
            "kind": if self.namespace.is_empty() { "ClusterRole" } else { "Role" },
            "name": self.role,
        });
        let subjects: Vec<Value> = self.subjects.iter().map(Subject::to_value).collect();
        if !subjects.is_empty() {
            value["subjects"] = json!(subjects);
        }
        value
    }
}

impl Subject {
    fn to_value(&self) -> Value {
        match self {
            Self::User(name) => json!({"apiGroup": GROUP, "kind": "User", "name": name}),
            Self::Group(name) => json!({"apiGroup": GROUP, "kind": "Group", "name": name}),
            Self::Account(name) => {
                json!({"kind": "ServiceAccount", "name": name, "namespace": "kube-system"})
            }
        }
    }
}

const GROUP: &str = "rbac.authorization.k8s.io";
const VERSION: &str = "rbac.authorization.k8s.io/v1";

/// The kind for the scope, and the metadata that all stock objects have.
fn common(kind: &str, namespace: &str, name: &str) -> (String, Value) {
    let mut metadata = json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    });
    if namespace.is_empty() {
        return (format!("Cluster{kind}"), metadata);
    }
    metadata["namespace"] = json!(namespace);
    (kind.to_owned(), metadata)
}

fn object(kind: &str, metadata: &Value) -> Value {
    json!({"apiVersion": VERSION, "kind": kind, "metadata": metadata})
}

/// The objects, made once for all servers of the process.
static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let roles = [users::ROLES, components::ROLES, components::NAMESPACED];
    let mut objects: Vec<Value> = roles.into_iter().flatten().map(Role::to_value).collect();
    for (name, rules) in controllers::ROLES {
        objects.push(role(name, rules).to_value());
        objects.push(controllers::binding(name));
    }
    objects.extend(bindings::ALL.iter().map(Binding::to_value));
    objects.iter_mut().for_each(track);
    objects
});

/// Makes the server the manager of what it stores; the time is told when it does.
fn track(object: &mut Value) {
    let Some(kind) = object["kind"]
        .as_str()
        .and_then(|kind| kinds::by_kind(VERSION, kind))
    else {
        return;
    };
    let mut written = object.clone();
    if let Some(members) = written.as_object_mut()
        && members.contains_key("aggregationRule")
    {
        // The rules are collected by somebody else.
        members.remove("rules");
    }
    let writer = Writer {
        kind,
        subresource: "",
        manager: "kube-apiserver",
        now: "",
    };
    object["metadata"]["managedFields"] = writer.track(None, &written);
}

/// What kubelets may do.
static NODE_RULES: LazyLock<Vec<PolicyRule>> = LazyLock::new(|| {
    let rules = components::NODE.rules.iter();
    rules.map(|rule| rule.to_policy()).collect()
});

/// Whether a kubelet may do what a request wants.
pub(crate) fn allows_node(attributes: &Attributes<'_>) -> bool {
    NODE_RULES.iter().any(|rule| rule.allows(attributes))
}

/// The stock roles and bindings, of which uids and times are still to be set.
pub(crate) fn objects() -> impl Iterator<Item = (&'static Kind, Draft)> {
    OBJECTS.iter().filter_map(|object| {
        let draft = Draft {
            value: object.clone(),
            data: None,
        };
        let kind = kinds::by_kind(VERSION, draft.text("/kind")?)?;
        Some((kind, draft))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_binding_names_a_role_that_exists() {
        let name = |value: &Value| {
            let metadata = &value["metadata"];
            (
                value["kind"].to_string(),
                metadata["namespace"].to_string(),
                metadata["name"].to_string(),
            )
        };
        let names: BTreeSet<_> = OBJECTS.iter().map(name).collect();
        assert_eq!(names.len(), OBJECTS.len(), "a name stands there twice");
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
    fn lists_in_rules_are_sorted_as_upstream_sorts_them() {
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
    fn the_server_manages_what_it_stores() {
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
    fn aggregated_roles_hold_the_rules_of_their_parts() {
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
