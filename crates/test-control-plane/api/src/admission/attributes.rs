//! The attributes of a request that policies match and read.
//!
//! Upstream: `admission.Attributes`

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Creates an object, or posts to a subresource such as `eviction`.
    Create,
    /// Changes an object, by update, patch or apply.
    Update,
    /// Deletes an object.
    Delete,
    /// Connects to a subresource such as `exec`.
    Connect,
}

impl Operation {
    /// Returns the name, such as `CREATE`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// A kind with its group and version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupVersionKind {
    /// The group; empty for core.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

/// A resource with its group and version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupVersionResource {
    /// The group; empty for core.
    pub group: String,
    /// The version.
    pub version: String,
    /// The resource.
    pub resource: String,
}

/// The user of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The uid; may be empty.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Extra values.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// A request before its effect.
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    /// The operation.
    pub operation: Operation,
    /// The kind of the object.
    pub kind: GroupVersionKind,
    /// The resource in the URL.
    pub resource: GroupVersionResource,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The namespace; that of its own name for a namespace; empty for other cluster-scoped objects.
    pub namespace: &'a str,
    /// The object's name.
    pub name: &'a str,
    /// The object after the request; `None` for deletions.
    pub object: Option<&'a Value>,
    /// The object before the request; `None` for creates.
    pub old_object: Option<&'a Value>,
    /// The options of the request.
    pub options: Option<Value>,
    /// True if nothing will be stored.
    pub dry_run: bool,
    /// The user.
    pub user: User,
}

impl Attributes<'_> {
    /// Returns true for the namespace objects themselves.
    pub(super) fn is_of_namespaces(&self) -> bool {
        let GroupVersionResource {
            group,
            version,
            resource,
        } = &self.resource;
        group.is_empty() && version == "v1" && resource == "namespaces"
    }

    /// Returns the request as expressions read it, for an object in this kind and resource.
    ///
    /// Upstream: `CreateAdmissionRequest`
    pub(super) fn request(
        &self,
        kind: &GroupVersionKind,
        resource: &GroupVersionResource,
    ) -> Value {
        let mut request = Map::new();
        let mut set = |name: &str, value: Value| {
            // Go omits the empty texts.
            if value != "" {
                request.insert(name.to_owned(), value);
            }
        };
        set("kind", of_kind(kind));
        set("resource", of_resource(resource));
        set("subResource", json!(self.subresource));
        set("requestKind", of_kind(&self.kind));
        set("requestResource", of_resource(&self.resource));
        set("requestSubResource", json!(self.subresource));
        set("name", json!(self.name));
        set("namespace", json!(self.namespace));
        set("operation", json!(self.operation.name()));
        set("userInfo", self.user.to_json());
        set("dryRun", json!(self.dry_run));
        set("options", self.options.clone().unwrap_or(Value::Null));
        Value::Object(request)
    }
}

impl User {
    fn to_json(&self) -> Value {
        let mut user = Map::new();
        let mut set = |name: &str, value: Value, is_empty: bool| {
            if !is_empty {
                user.insert(name.to_owned(), value);
            }
        };
        set("username", json!(self.name), self.name.is_empty());
        set("uid", json!(self.uid), self.uid.is_empty());
        set("groups", json!(self.groups), self.groups.is_empty());
        set("extra", json!(self.extra), self.extra.is_empty());
        Value::Object(user)
    }
}

fn of_kind(of: &GroupVersionKind) -> Value {
    json!({"group": of.group, "version": of.version, "kind": of.kind})
}

fn of_resource(of: &GroupVersionResource) -> Value {
    json!({"group": of.group, "version": of.version, "resource": of.resource})
}
