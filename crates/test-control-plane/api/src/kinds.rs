//! The served kinds as data: a new kind is a new row.

mod custom;
mod subresource;
mod table;
mod target;
mod verb;

use kube_apimachinery::schema::{self, Type};

use crate::custom::CustomResource;

pub use custom::of_definition;
pub use subresource::Subresource;
pub use table::KINDS;
pub use table::TOKEN_REQUEST;
pub use target::Target;
pub use verb::Verb;

/// One resource of one group version.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The API group, empty for core.
    pub group: &'static str,
    /// The version within the group.
    pub version: &'static str,
    /// The kind in bodies, such as `Pod`.
    pub kind: &'static str,
    /// The resource in URLs, such as `pods`.
    pub plural: &'static str,
    /// The singular name of the resource.
    pub singular: &'static str,
    /// The name of the storage. Two rows with the same name serve the same objects.
    pub storage: &'static str,
    /// True if objects are namespaced.
    pub namespaced: bool,
    /// The short names that kubectl accepts.
    pub short_names: &'static [&'static str],
    /// Groups of kinds for kubectl, such as `all`.
    pub categories: &'static [&'static str],
    /// The supported verbs, in discovery order.
    pub verbs: &'static [Verb],
    /// The subresources, in discovery order.
    pub subresources: &'static [Subresource],
    /// Deviations from the common behaviour.
    pub traits: &'static [Trait],
    /// Field selectors beyond name and namespace.
    pub fields: &'static [Field],
    /// The rule for names.
    pub name_rule: NameRule,
    /// The version of its definition, for a custom resource.
    pub custom: Option<&'static CustomResource>,
}

/// A field for field selectors.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name in selectors.
    pub label: &'static str,
    /// The JSON pointer to its value.
    pub pointer: &'static str,
    /// The JSON pointer to use if the first value is missing or empty.
    pub otherwise: Option<&'static str>,
    /// The value if the object has none.
    pub default: &'static str,
}

/// A deviation of a kind from the common behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trait {
    /// Has a `metadata.generation` that counts changes of the spec.
    Generation,
    /// An update must carry the resourceVersion that it is based on.
    NoUnconditionalUpdate,
    /// A PUT of an object that doesn't exist creates it.
    CreateOnUpdate,
    /// Deletion answers with the object instead of a Status.
    ReturnsDeleted,
    /// Deletion has a grace period (pods).
    Graceful,
    /// An unknown field selector gets the error of kinds with their own list of field labels.
    OwnFieldLabels,
    /// Keeps `.data` verbatim (controller revisions).
    RawData,
    /// Serves another version of objects that a different row stores.
    View,
    /// Answers requests but is never stored (reviews, bindings, component statuses).
    Virtual,
}

/// The rules for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// At most 63 lower-case letters, digits and dashes.
    Label,
    /// As `Label`, but starts with a letter.
    LetterLabel,
    /// Labels joined by dots, at most 253 characters.
    Subdomain,
    /// Any path segment.
    PathSegment,
}

impl Kind {
    /// Returns true if the kind has the trait.
    pub fn has(&self, wanted: Trait) -> bool {
        self.traits.contains(&wanted)
    }

    /// Returns true if objects or collections support the verb.
    pub fn allows(&self, wanted: Verb) -> bool {
        self.verbs.contains(&wanted)
    }

    /// Returns true if the kind has the subresource.
    pub fn serves(&self, wanted: Subresource) -> bool {
        self.subresources.contains(&wanted)
    }

    /// Returns the `apiVersion` of bodies.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns the resource with its group, as in messages: `statefulsets.apps`.
    pub fn group_resource(&self) -> String {
        with_group(self.plural, self.group)
    }

    /// Returns the kind with its group, as in messages: `StatefulSet.apps`.
    pub fn group_kind(&self) -> String {
        with_group(self.kind, self.group)
    }

    /// Returns the URL path of a collection.
    pub fn collection_path(&self, namespace: &str) -> String {
        let root = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        if self.namespaced && !namespace.is_empty() {
            format!("{root}/namespaces/{namespace}/{}", self.plural)
        } else {
            format!("{root}/{}", self.plural)
        }
    }

    /// Returns the URL path of an object.
    pub fn object_path(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.collection_path(namespace))
    }
}

fn with_group(name: &str, group: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}

/// Finds the row of a resource in a URL.
pub fn by_resource(group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
    KINDS
        .iter()
        .find(|k| k.group == group && k.version == version && k.plural == plural)
}

/// Finds the row of a kind in a body.
pub fn by_kind(api_version: &str, kind: &str) -> Option<&'static Kind> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    KINDS
        .iter()
        .find(|k| k.group == group && k.version == version && k.kind == kind)
}

/// Finds the row that stores objects under this storage name.
pub fn by_storage(storage: &str) -> Option<&'static Kind> {
    KINDS
        .iter()
        .find(|k| k.storage == storage && !k.has(Trait::View))
}

/// Returns the schema type of a kind.
pub(crate) fn type_of(kind: &Kind) -> Option<&'static Type> {
    schema::type_of_kind(&kind.api_version(), kind.kind)
}

/// Returns the row by which objects of `kind` are handled before they are stored. A custom resource
/// is handled in the version of the request.
pub fn stored(kind: &'static Kind) -> &'static Kind {
    if kind.custom.is_some() {
        return kind;
    }
    by_storage(kind.storage).unwrap_or(kind)
}

/// Returns the object's key in the reference's storage, for error messages.
pub fn registry_key(kind: &Kind, namespace: &str, name: &str) -> String {
    let custom;
    let directory = match kind.storage {
        _ if kind.custom.is_some() => {
            custom = format!("{}/{}", kind.group, kind.plural);
            &custom
        }
        "endpoints" => "services/endpoints",
        "nodes" => "minions",
        "replicationcontrollers" => "controllers",
        "services" => "services/specs",
        plural => plural,
    };
    if namespace.is_empty() {
        format!("/registry/{directory}/{name}")
    } else {
        format!("/registry/{directory}/{namespace}/{name}")
    }
}

/// Returns true if objects of this storage name are authorization rules.
pub fn is_policy(storage: &str) -> bool {
    matches!(
        storage,
        "clusterrolebindings" | "clusterroles" | "rolebindings" | "roles"
    )
}

/// Returns the group version if it is served; without a version, the group's first.
pub fn group_version(group: &str, version: Option<&str>) -> Option<(&'static str, &'static str)> {
    KINDS
        .iter()
        .find(|k| k.group == group && version.is_none_or(|version| version == k.version))
        .map(|k| (k.group, k.version))
}

/// Returns all group versions in the order of the table, core first.
pub fn group_versions() -> Vec<(&'static str, &'static str)> {
    let rows: Vec<&'static Kind> = KINDS.iter().collect();
    group_versions_of(&rows)
}

/// Returns the group versions of some rows, in their order.
pub fn group_versions_of<'a>(
    rows: impl IntoIterator<Item = &'a &'static Kind>,
) -> Vec<(&'static str, &'static str)> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for kind in rows {
        if !found.contains(&(kind.group, kind.version)) {
            found.push((kind.group, kind.version));
        }
    }
    found
}
