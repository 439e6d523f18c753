//! The values that the expressions of a policy read.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::admission::{Attributes, GroupVersionKind, GroupVersionResource};
use crate::cel::{Authorizer, Resource, shared, values};

/// The members of a namespace's metadata that expressions read.
const OF_METADATA: [&str; 12] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "name",
    "namespace",
    "resourceVersion",
    "uid",
];

/// The values of one request, for an object in one version.
#[derive(Debug)]
pub struct Inputs {
    object: values::Value,
    old_object: values::Value,
    request: values::Value,
    namespace: values::Value,
    authorizer: values::Value,
    request_resource: values::Value,
}

/// The variables of one evaluation with their names.
pub(super) type Bindings = Arc<[(&'static str, values::Value)]>;

/// The optional variables of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Optional {
    pub(super) has_authorizer: bool,
    pub(super) has_namespace: bool,
}

impl Inputs {
    /// Returns the inputs of a request. Its objects have the kind `kind`, and `namespace` is the one
    /// around them.
    pub fn new(
        attributes: &Attributes<'_>,
        kind: &GroupVersionKind,
        resource: &GroupVersionResource,
        namespace: Option<&Value>,
        authorizer: &Arc<dyn Authorizer>,
    ) -> Self {
        let of = |value: Option<&Value>| shared(values::untyped(value.unwrap_or(&Value::Null)));
        let namespace = namespace.map(namespace_object);
        Self {
            object: of(attributes.object),
            old_object: of(attributes.old_object),
            request: of(Some(&attributes.request(kind, resource))),
            namespace: of(namespace.as_ref()),
            authorizer: values::authorizer(authorizer),
            request_resource: values::resource_check(
                authorizer,
                Resource {
                    group: attributes.resource.group.clone(),
                    resource: attributes.resource.resource.clone(),
                    subresource: attributes.subresource.to_owned(),
                    namespace: attributes.namespace.to_owned(),
                    name: attributes.name.to_owned(),
                },
            ),
        }
    }

    /// Returns the variables with these parameters.
    pub(super) fn bindings(&self, params: Option<&Value>, optional: Optional) -> Bindings {
        let params = shared(values::untyped(params.unwrap_or(&Value::Null)));
        let namespace = if optional.has_namespace {
            self.namespace.clone_as_boxed()
        } else {
            shared(values::null())
        };
        let mut bindings = vec![
            ("object", self.object.clone_as_boxed()),
            ("oldObject", self.old_object.clone_as_boxed()),
            ("params", params),
            ("request", self.request.clone_as_boxed()),
            ("namespaceObject", namespace),
        ];
        if optional.has_authorizer {
            bindings.push(("authorizer", self.authorizer.clone_as_boxed()));
            let name = "authorizer.requestResource";
            bindings.push((name, self.request_resource.clone_as_boxed()));
        }
        bindings.into()
    }
}

/// Returns the part of a namespace that expressions read.
///
/// Upstream: `CreateNamespaceObject`
fn namespace_object(namespace: &Value) -> Value {
    let members = |value: Option<&Value>| {
        let members = value.and_then(Value::as_object);
        members.cloned().unwrap_or_default()
    };
    let mut metadata = members(namespace.get("metadata"));
    metadata.retain(|name, _| OF_METADATA.contains(&name.as_str()));
    let mut object = Map::new();
    object.insert("metadata".to_owned(), Value::Object(metadata));
    for part in ["spec", "status"] {
        let value = Value::Object(members(namespace.get(part)));
        object.insert(part.to_owned(), value);
    }
    Value::Object(object)
}
