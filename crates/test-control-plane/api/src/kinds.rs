//! The kinds that the server knows, as data: adding a kind is adding a row.

mod subresource;
mod table;
mod target;
mod verb;

use kube_apimachinery::schema::{self, Type};

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
    /// The resource in the singular.
    pub singular: &'static str,
    /// Under which name objects are stored; two rows with the same name serve the same objects.
    pub storage: &'static str,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Abbreviations that kubectl knows.
    pub short_names: &'static [&'static str],
    /// Groups of kinds for kubectl, such as `all`.
    pub categories: &'static [&'static str],
    /// What can be done with objects and collections, in the order in which discovery lists it.
    pub verbs: &'static [Verb],
    /// What is served below an object, in the same order.
    pub subresources: &'static [Subresource],
    /// Deviations from the common behaviour.
    pub traits: &'static [Trait],
    /// Field selectors beyond name and namespace.
    pub fields: &'static [Field],
    /// What names must look like.
    pub name_rule: NameRule,
}

/// A field that objects can be selected by.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name in selectors.
    pub label: &'static str,
    /// The JSON pointer to its value.
    pub pointer: &'static str,
    /// The JSON pointer to the value that stands in where that one is missing or empty.
    pub otherwise: Option<&'static str>,
    /// Its value where the object has none.
    pub default: &'static str,
}

/// A deviation of a kind from the common behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trait {
    /// Has a `metadata.generation` that counts changes of the spec.
    Generation,
    /// An update must name the resourceVersion that it was made from.
    NoUnconditionalUpdate,
    /// A PUT of an object that doesn't exist creates it.
    CreateOnUpdate,
    /// Deletion answers with the object instead of a Status.
    ReturnsDeleted,
    /// Is deleted with a grace period (pods).
    Graceful,
    /// An unknown field selector is answered in the words of kinds with a list of their own.
    OwnFieldLabels,
    /// Keeps `.data` as the text that was sent (controller revisions).
    RawData,
    /// Is the second form of objects that another row stores.
    View,
    /// Is answered to and never stored (reviews, bindings, component statuses).
    Virtual,
}

/// What names must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// At most 63 characters of lower case letters, digits and dashes.
    Label,
    /// As `Label`, but starts with a letter.
    LetterLabel,
    /// Labels joined by dots, at most 253 characters.
    Subdomain,
    /// Anything that can be a segment of a path.
    PathSegment,
}

impl Kind {
    /// Whether the kind has the trait.
    pub fn has(&self, wanted: Trait) -> bool {
        self.traits.contains(&wanted)
    }

    /// Whether the verb is allowed on objects or collections.
    pub fn allows(&self, wanted: Verb) -> bool {
        self.verbs.contains(&wanted)
    }

    /// Whether the subresource is served.
    pub fn serves(&self, wanted: Subresource) -> bool {
        self.subresources.contains(&wanted)
    }

    /// The `apiVersion` in bodies.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The resource with its group, as messages name it: `statefulsets.apps`.
    pub fn group_resource(&self) -> String {
        with_group(self.plural, self.group)
    }

    /// The kind with its group, as messages name it: `StatefulSet.apps`.
    pub fn group_kind(&self) -> String {
        with_group(self.kind, self.group)
    }

    /// The URL of a collection.
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

    /// The URL of an object.
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

/// The row of a resource in a URL.
pub fn by_resource(group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
    KINDS
        .iter()
        .find(|k| k.group == group && k.version == version && k.plural == plural)
}

/// The row of a kind in a body.
pub fn by_kind(api_version: &str, kind: &str) -> Option<&'static Kind> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    KINDS
        .iter()
        .find(|k| k.group == group && k.version == version && k.kind == kind)
}

/// The row that stores the objects of a storage name.
pub fn by_storage(storage: &str) -> Option<&'static Kind> {
    KINDS
        .iter()
        .find(|k| k.storage == storage && !k.has(Trait::View))
}

/// The type of a kind's objects.
pub(crate) fn type_of(kind: &Kind) -> Option<&'static Type> {
    schema::type_of_kind(&kind.api_version(), kind.kind)
}

/// The row that stores what `kind` serves.
pub fn stored(kind: &'static Kind) -> &'static Kind {
    by_storage(kind.storage).unwrap_or(kind)
}

/// Where the reference keeps an object, which some messages tell.
pub fn registry_key(kind: &Kind, namespace: &str, name: &str) -> String {
    let directory = match kind.storage {
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

/// Whether the objects of a storage name say who may do what.
pub fn is_policy(storage: &str) -> bool {
    matches!(
        storage,
        "clusterrolebindings" | "clusterroles" | "rolebindings" | "roles"
    )
}

/// The group version, if the server serves it; without a version, the group's first.
pub fn group_version(group: &str, version: Option<&str>) -> Option<(&'static str, &'static str)> {
    KINDS
        .iter()
        .find(|k| k.group == group && version.is_none_or(|version| version == k.version))
        .map(|k| (k.group, k.version))
}

/// Every group version in the order of the table, core first.
pub fn group_versions() -> Vec<(&'static str, &'static str)> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for kind in KINDS {
        if !found.contains(&(kind.group, kind.version)) {
            found.push((kind.group, kind.version));
        }
    }
    found
}
