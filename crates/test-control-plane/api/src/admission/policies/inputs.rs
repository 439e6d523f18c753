//! The values that the expressions of a policy read.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use crate::admission::{Attributes, GroupVersionKind, GroupVersionResource};
use crate::cel::{Authorizer, Resource, Scope, shared, values};

/// The name of the parameters.
pub(super) const PARAMS: &str = "params";

/// The fields of a namespace's metadata that expressions read.
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
    /// The request as conditions read it, if that differs: its resource is the sent one.
    sent_request: Option<values::Value>,
    namespace: values::Value,
    /// The namespace with the fields that only annotations read.
    whole_namespace: Value,
    authorizer: values::Value,
    request_resource: values::Value,
    /// The variables of all policies, for each reader.
    scopes: [OnceLock<Arc<Scope>>; 4],
}

/// The variables of one policy's expressions, without those that it defines.
#[derive(Clone, Debug)]
pub(super) struct Bindings {
    pub(super) scope: Arc<Scope>,
    pub(super) params: Arc<values::Value>,
}

/// The expressions that read variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// Match conditions, which have no namespace.
    Conditions,
    /// Rules and changes.
    Rules,
    /// Messages, which have no authorizer.
    Messages,
    /// Audit annotations, which have no authorizer, and for which upstream doesn't trim the namespace.
    Annotations,
}

/// Returns parameters as expressions read them; null if there are none.
pub(super) fn params(params: Option<&Value>) -> Arc<values::Value> {
    Arc::new(shared(values::untyped(params.unwrap_or(&Value::Null))))
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
        let whole_namespace = namespace.cloned().unwrap_or_default();
        let namespace = namespace.map(namespace_object);
        let sent = &attributes.resource;
        let sent_request = (resource != sent).then(|| attributes.request(kind, sent));
        Self {
            object: of(attributes.object),
            old_object: of(attributes.old_object),
            request: of(Some(&attributes.request(kind, resource))),
            sent_request: sent_request.map(|request| of(Some(&request))),
            namespace: of(namespace.as_ref()),
            whole_namespace,
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
            scopes: Default::default(),
        }
    }

    /// Returns the variables of a reader with these parameters.
    pub(super) fn bindings(&self, params: &Arc<values::Value>, reader: Reader) -> Bindings {
        let [conditions, rules, messages, annotations] = &self.scopes;
        let scope = match reader {
            Reader::Conditions => conditions,
            Reader::Rules => rules,
            Reader::Messages => messages,
            Reader::Annotations => annotations,
        };
        Bindings {
            scope: Arc::clone(scope.get_or_init(|| Arc::new(self.scope(reader)))),
            params: Arc::clone(params),
        }
    }

    fn scope(&self, reader: Reader) -> Scope {
        let namespace = match reader {
            Reader::Conditions => shared(values::null()),
            Reader::Rules | Reader::Messages => self.namespace.clone_as_boxed(),
            Reader::Annotations => shared(values::untyped(&cached(&self.whole_namespace))),
        };
        let request = match (reader, &self.sent_request) {
            (Reader::Conditions, Some(request)) => request,
            _ => &self.request,
        };
        let always = [
            ("object", self.object.clone_as_boxed()),
            ("oldObject", self.old_object.clone_as_boxed()),
            ("request", request.clone_as_boxed()),
            ("namespaceObject", namespace),
        ];
        let of_authorizer = [
            ("authorizer", &self.authorizer),
            ("authorizer.requestResource", &self.request_resource),
        ];
        let of_authorizer = of_authorizer
            .into_iter()
            .filter(|_| matches!(reader, Reader::Conditions | Reader::Rules))
            .map(|(name, value)| (name, value.clone_as_boxed()));
        Scope::new(always.into_iter().chain(of_authorizer))
    }
}

/// Returns an object as upstream's caches hold it: without its version, its kind and its managers.
fn cached(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(members) = object.as_object_mut() {
        members.retain(|name, _| !matches!(name.as_str(), "apiVersion" | "kind"));
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
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
