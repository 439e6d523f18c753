//! The request as policies and webhooks see it.

use std::sync::Arc;

use kube_test_control_plane_api::admission::{
    Attributes, Constraints, Equivalent, GroupVersionKind, GroupVersionResource, Namespace,
    Operation, User,
};
use kube_test_control_plane_api::kinds::{self, KINDS, Kind, SCALE, Subresource, Target};
use kube_test_control_plane_api::object::{Draft, Key};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::{Map, Value, json};

use crate::auth::Identity;
use crate::route::ResourceRequest;
use crate::state::{Access, Reads};
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
fn attributes<'a>(
    request: &'a ResourceRequest,
    user: &Identity,
    name: &'a str,
    objects: &'a Objects<'_>,
) -> Attributes<'a> {
    let kind = &request.kind;
    let is_namespace = &*kind.storage == "namespaces" && kind.custom.is_none();
    Attributes {
        operation: objects.operation,
        kind: kind_of(request),
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
fn kind_of(request: &ResourceRequest) -> GroupVersionKind {
    let kind = &request.kind;
    let (group, version, kind) = match request.requested.part() {
        Some(part) => kind.response_type(part),
        None => (&*kind.group, &*kind.version, &*kind.kind),
    };
    GroupVersionKind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
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

/// Returns the rows that serve the same objects, in other versions or groups, with their kinds.
fn equivalents(reads: &Reads, request: &ResourceRequest) -> Vec<Equivalent> {
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

/// A request that constraints match.
pub(super) struct Asked<'a> {
    pub(super) attributes: Attributes<'a>,
    pub(super) around: Around<'a>,
    equivalents: Vec<Equivalent>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(
        access: &'a Access,
        request: &'a ResourceRequest,
        name: &'a str,
        objects: &'a Objects<'_>,
    ) -> Self {
        let reads = &*access.reads;
        let user = request.user.as_ref().unwrap_or(&access.admin);
        let attributes = attributes(request, user, name, objects);
        Self {
            around: Around {
                reads,
                name: attributes.namespace,
            },
            attributes,
            equivalents: equivalents(reads, request),
        }
    }

    /// Returns the form in which the request meets constraints, if it does.
    ///
    /// # Errors
    ///
    /// A selector can't be used, or there is no such namespace.
    pub(super) fn meets(&self, constraints: &Constraints) -> ApiResult<Option<Equivalent>> {
        constraints.matches(&self.attributes, &self.around, &self.equivalents)
    }
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
        let kind = kinds::by_resource("", "v1", "namespaces");
        let kind = kind.ok_or_else(ApiError::no_such_resource)?;
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
