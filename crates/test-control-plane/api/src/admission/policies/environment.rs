//! The variables that the expressions of policies may read.
//!
//! Upstream: `BuildRequestType`, `BuildNamespaceType`, `compositionState`

use std::sync::LazyLock;

use crate::cel::Type;

/// The name of the object with a policy's variables.
pub(super) const VARIABLES: &str = "variables";

/// The variables with an authorizer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Authorizers {
    /// None.
    #[default]
    None,
    /// `authorizer`.
    Plain,
    /// `authorizer` and `authorizer.requestResource`.
    WithRequestResource,
}

/// The variables of an expression, with their types.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    /// The type of the object and of the old object.
    pub(crate) object: Type,
    /// The type of the parameters, if there are any.
    pub(crate) params: Option<Type>,
    /// The variables with an authorizer.
    pub(crate) authorizers: Authorizers,
    /// True if expressions may make objects and patches.
    pub(crate) makes_objects: bool,
    /// The policy's variables so far; `None` where it may have none.
    pub(crate) variables: Option<Vec<(String, Type)>>,
}

static REQUEST: LazyLock<Type> = LazyLock::new(request);

static NAMESPACE: LazyLock<Type> = LazyLock::new(namespace);

impl Environment {
    /// Returns the variables with their types.
    pub(super) fn declared(&self) -> Vec<(&'static str, Type)> {
        let mut declared = vec![
            ("object", self.object.clone()),
            ("oldObject", self.object.clone()),
            ("namespaceObject", NAMESPACE.clone()),
            ("request", REQUEST.clone()),
        ];
        if let Some(params) = &self.params {
            declared.push(("params", params.clone()));
        }
        let of = |name| Type::Opaque(name);
        if self.authorizers != Authorizers::None {
            let name = "kubernetes.authorization.Authorizer";
            declared.push(("authorizer", of(name)));
        }
        if self.authorizers == Authorizers::WithRequestResource {
            let name = "kubernetes.authorization.ResourceCheck";
            declared.push(("authorizer.requestResource", of(name)));
        }
        if let Some(variables) = &self.variables {
            let fields = variables.iter();
            let fields = fields.map(|(name, of)| (name.as_str(), of.clone()));
            declared.push((VARIABLES, Type::object("kubernetes.variables", fields)));
        }
        declared
    }

    /// Adds a variable with the type of its expression, if that has one.
    pub(crate) fn add_variable(&mut self, name: &str, of: Option<&Type>) {
        let of = of.map_or(Type::Dyn, as_field);
        let variables = self.variables.get_or_insert_default();
        variables.retain(|(known, _)| known != name);
        variables.push((name.to_owned(), of));
    }
}

/// Returns the type of a field with values of a type: those of libraries are not known there.
///
/// Upstream: `convertCelTypeToDeclType`
fn as_field(of: &Type) -> Type {
    match of {
        Type::List(of) => Type::list(as_field(of)),
        Type::Map(key, value) => Type::map(as_field(key), as_field(value)),
        Type::Error
        | Type::Optional(_)
        | Type::Meta(_)
        | Type::Opaque(_)
        | Type::Made(_)
        | Type::Object(_)
        | Type::Param(_) => Type::Dyn,
        plain => plain.clone(),
    }
}

fn texts() -> Type {
    Type::list(Type::String)
}

fn request() -> Type {
    let kind = Type::object(
        "kubernetes.GroupVersionKind",
        ["group", "version", "kind"].map(|name| (name, Type::String)),
    );
    let resource = Type::object(
        "kubernetes.GroupVersionResource",
        ["group", "version", "resource"].map(|name| (name, Type::String)),
    );
    let user = Type::object(
        "kubernetes.UserInfo",
        [
            ("username", Type::String),
            ("uid", Type::String),
            ("groups", texts()),
            ("extra", Type::map(Type::String, texts())),
        ],
    );
    Type::object(
        "kubernetes.AdmissionRequest",
        [
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", Type::String),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", Type::String),
            ("name", Type::String),
            ("namespace", Type::String),
            ("operation", Type::String),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    )
}

fn namespace() -> Type {
    let labels = || Type::map(Type::String, Type::String);
    let metadata = Type::object(
        "kubernetes.NamespaceMetadata",
        [
            ("name", Type::String),
            ("generateName", Type::String),
            ("namespace", Type::String),
            ("labels", labels()),
            ("annotations", labels()),
            ("UID", Type::String),
            ("creationTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Timestamp),
            ("generation", Type::Int),
            ("resourceVersion", Type::String),
            ("finalizers", texts()),
        ],
    );
    let condition = Type::object(
        "kubernetes.NamespaceCondition",
        [
            ("status", Type::String),
            ("type", Type::String),
            ("lastTransitionTime", Type::Timestamp),
            ("message", Type::String),
            ("reason", Type::String),
        ],
    );
    let spec = Type::object("kubernetes.NamespaceSpec", [("finalizers", texts())]);
    let status = Type::object(
        "kubernetes.NamespaceStatus",
        [
            ("conditions", Type::list(condition)),
            ("phase", Type::String),
        ],
    );
    Type::object(
        "kubernetes.Namespace",
        [("metadata", metadata), ("spec", spec), ("status", status)],
    )
}
