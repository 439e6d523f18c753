//! The request as policies see it.

use std::sync::Arc;

use kube_test_control_plane_api::kinds::{KINDS, Kind, SCALE, Subresource, Target, by_resource};
use kube_test_control_plane_api::object::{Draft, Key};
use kube_test_control_plane_api::policies::{
    Attributes, Equivalent, GroupVersionKind, GroupVersionResource, Namespace, Operation, User,
};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::views;
use serde_json::{Map, Value, json};

use crate::auth::Identity;
use crate::route::ResourceRequest;
use crate::state::Reads;
use crate::write::{scale_of, served_value};

/// The objects and options of a request.
#[derive(Clone)]
pub(super) struct Objects<'a> {
    pub(super) operation: Operation,
    pub(super) object: Option<Value>,
    pub(super) old_object: Option<Value>,
    /// The options without their kind; `None` for connections.
    pub(super) options: Option<&'a Map<String, Value>>,
    pub(super) dry_run: bool,
}

/// Returns an object in the form of the request.
pub(super) fn served(request: &ResourceRequest, draft: &Draft) -> Value {
    if request.requested == Target::Part(Subresource::Scale) {
        return scale_of(&request.kind, draft);
    }
    served_value(&request.kind, draft).into_owned()
}

/// Returns the attributes of a request about an object of this name.
pub(super) fn attributes<'a>(
    request: &'a ResourceRequest,
    user: &Identity,
    name: &'a str,
    objects: &'a Objects<'_>,
) -> Attributes<'a> {
    let kind = &request.kind;
    let is_namespace = &*kind.storage == "namespaces" && kind.custom.is_none();
    Attributes {
        operation: objects.operation,
        kind: kind_of(request, objects),
        resource: resource_of(kind),
        subresource: request.requested.subresource(),
        namespace: if is_namespace {
            name
        } else {
            &request.namespace
        },
        name,
        object: objects.object.as_ref(),
        old_object: objects.old_object.as_ref(),
        options: objects.options.map(|sent| options(objects.operation, sent)),
        dry_run: objects.dry_run,
        user: User {
            name: user.name.clone(),
            uid: user.uid.clone(),
            groups: user.groups.clone(),
            extra: user.extra.clone(),
        },
    }
}

/// Returns the kind of the objects: that of the bodies of a subresource, or that of the resource.
fn kind_of(request: &ResourceRequest, objects: &Objects<'_>) -> GroupVersionKind {
    let kind = &request.kind;
    let of = |group: &str, version: &str, kind: &str| GroupVersionKind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
    };
    match request.requested {
        Target::Part(Subresource::Scale) => of(&SCALE.group, &SCALE.version, &SCALE.kind),
        Target::Part(Subresource::Binding) => of("", "v1", "Binding"),
        Target::Part(Subresource::Eviction) => of("policy", "v1", "Eviction"),
        Target::Part(Subresource::Token) => of("authentication.k8s.io", "v1", "TokenRequest"),
        _ if objects.operation == Operation::Connect => {
            let object = objects.object.as_ref();
            let kind = object.and_then(|object| object["kind"].as_str());
            of("", "v1", kind.unwrap_or_default())
        }
        _ => of(&kind.group, &kind.version, &kind.kind),
    }
}

fn resource_of(kind: &Kind) -> GroupVersionResource {
    GroupVersionResource {
        group: kind.group.clone(),
        version: kind.version.clone(),
        resource: kind.plural.clone(),
    }
}

fn options(operation: Operation, sent: &Map<String, Value>) -> Value {
    let kind = match operation {
        Operation::Create | Operation::Connect => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
    };
    let mut options = sent.clone();
    options.insert("kind".to_owned(), json!(kind));
    options.insert("apiVersion".to_owned(), json!("meta.k8s.io/v1"));
    Value::Object(options)
}

/// Converts an object of a request to the form that policies match.
pub(super) fn to_matched(attributes: &Attributes<'_>, matched: &Equivalent, object: &mut Value) {
    if matched.kind == attributes.kind {
        return;
    }
    let built_in = [&attributes.resource, &matched.resource].map(built_in);
    if let [Some(from), Some(to)] = built_in {
        views::to_stored(from, object);
        views::to_served(to, object);
    }
    let version = match matched.kind.group.as_str() {
        "" => matched.kind.version.clone(),
        group => format!("{group}/{}", matched.kind.version),
    };
    object["apiVersion"] = json!(version);
}

/// Returns a built-in kind.
pub(super) fn built_in(resource: &GroupVersionResource) -> Option<&'static Arc<Kind>> {
    by_resource(&resource.group, &resource.version, &resource.resource)
}

/// Returns the rows that serve the same objects, in other versions or groups, with their kinds.
pub(super) fn equivalents(reads: &Reads, request: &ResourceRequest) -> Vec<Equivalent> {
    let kind = &request.kind;
    let part = request.requested.part();
    let is_same = |other: &&Arc<Kind>| {
        other.storage == kind.storage
            && other.custom.is_some() == kind.custom.is_some()
            && part.is_none_or(|part| other.serves(part))
    };
    let equivalent = |other: &Arc<Kind>| Equivalent {
        resource: resource_of(other),
        kind: match part {
            Some(Subresource::Scale) => GroupVersionKind {
                group: SCALE.group.clone(),
                version: SCALE.version.clone(),
                kind: SCALE.kind.clone(),
            },
            _ => GroupVersionKind {
                group: other.group.clone(),
                version: other.version.clone(),
                kind: other.kind.clone(),
            },
        },
    };
    if kind.custom.is_none() {
        return KINDS.iter().filter(is_same).map(equivalent).collect();
    }
    let custom = reads.custom_kinds();
    custom.rows().filter(is_same).map(equivalent).collect()
}

/// The namespace around the object of a request.
pub(super) struct Around<'a> {
    pub(super) reads: &'a Reads,
    pub(super) name: &'a str,
}

impl Around<'_> {
    /// Returns the namespace.
    ///
    /// # Errors
    ///
    /// There is none of this name.
    pub(super) fn object(&self) -> ApiResult<Value> {
        let kinds = by_resource("", "v1", "namespaces");
        let kind = kinds.ok_or_else(ApiError::no_such_resource)?;
        let found = self.reads.store.get(&Key::new(kind, "", self.name));
        let found = found.ok_or_else(|| ApiError::not_found(kind, self.name))?;
        Ok(found.value())
    }
}

impl Namespace for Around<'_> {
    fn labels(&self) -> ApiResult<Map<String, Value>> {
        let labels = self.object()?.pointer("/metadata/labels").cloned();
        Ok(match labels {
            Some(Value::Object(labels)) => labels,
            _ => Map::new(),
        })
    }
}
