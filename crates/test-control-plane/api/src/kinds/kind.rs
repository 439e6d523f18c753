//! A kind as data.

use std::sync::Arc;

use serde::Deserialize;

use super::subresource::Subresource;
use super::verb::Verb;
use crate::custom::{CustomResource, Scale};

/// One resource of one group version.
#[derive(Clone, Debug)]
pub struct Kind {
    /// The API group, empty for core.
    pub group: String,
    /// The version within the group.
    pub version: String,
    /// The kind in bodies, such as `Pod`.
    pub kind: String,
    /// The resource in URLs, such as `pods`.
    pub plural: String,
    /// The singular name of the resource.
    pub singular: String,
    /// The name of the storage. Two rows with the same name serve the same objects.
    pub storage: Arc<str>,
    /// True if objects are namespaced.
    pub namespaced: bool,
    /// The short names that kubectl accepts.
    pub short_names: Vec<String>,
    /// Groups of kinds for kubectl, such as `all`.
    pub categories: Vec<String>,
    /// The supported verbs, in discovery order.
    pub verbs: Vec<Verb>,
    /// The subresources, in discovery order.
    pub subresources: Vec<Subresource>,
    /// Deviations from the common behaviour.
    pub traits: Vec<Trait>,
    /// Field selectors beyond name and namespace.
    pub fields: Vec<Field>,
    /// The rule for names.
    pub name_rule: NameRule,
    /// The rounds of metadata checks.
    pub rounds: Rounds,
    /// Those of the status, if they differ.
    pub status_rounds: Option<Rounds>,
    /// The version of its definition, for a custom resource.
    pub custom: Option<CustomResource>,
}

/// A field for field selectors.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name in selectors.
    pub label: String,
    /// The JSON pointer to its value.
    pub pointer: String,
    /// The JSON pointer to use if the first value is missing or empty.
    pub otherwise: Option<String>,
    /// The value if the object has none.
    pub default: String,
}

/// A deviation of a kind from the common behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trait {
    /// Has a `metadata.generation` that counts changes of the spec.
    Generation,
    /// An update must carry the resourceVersion that it is based on.
    NoUnconditionalUpdate,
    /// A PUT of an object that doesn't exist creates it.
    CreateOnUpdate,
    /// Deletion responds with the object instead of a Status.
    ReturnsDeleted,
    /// Deletion has a grace period (pods).
    Graceful,
    /// An unknown field selector gets the error of kinds with their own list of field labels.
    OwnFieldLabels,
    /// Keeps `.data` verbatim (controller revisions).
    RawData,
    /// Serves another version of objects that a different row stores.
    View,
    /// Responds to requests but is never stored (reviews, bindings, component statuses).
    Virtual,
    /// Reads also return objects of the server that are never stored (API services).
    OwnRows,
    /// Only a type of bodies; no path serves it.
    Bodies,
}

/// The rules for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameRule {
    /// At most 63 lower-case letters, digits and dashes.
    Label,
    /// As `Label`, but starts with a letter.
    LetterLabel,
    /// Labels joined by dots, at most 253 characters.
    Subdomain,
    /// As `Subdomain`; prefixes of generated names may be any path segment.
    LongName,
    /// Any path segment.
    PathSegment,
}

/// The rounds of metadata checks that a kind adds on an update, besides the rounds for all kinds.
/// Each round reports its findings, so clients see duplicates as often as with upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rounds {
    /// Only the update rules.
    Update,
    /// The update rules and all create rules.
    UpdateAndFull,
    /// The same, in the other order.
    FullAndUpdate,
    /// Only the create rules. The rules of some kinds have the update rules in between.
    Full,
    /// None; the name must only be a path segment.
    Nothing,
}

impl Kind {
    /// Returns the row of a namespaced resource without deviations.
    pub fn plain(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            storage: plural.into(),
            namespaced: true,
            short_names: Vec::new(),
            categories: Vec::new(),
            verbs: Verb::ALL.to_vec(),
            subresources: Vec::new(),
            traits: Vec::new(),
            fields: Vec::new(),
            name_rule: NameRule::Subdomain,
            rounds: Rounds::UpdateAndFull,
            status_rounds: None,
            custom: None,
        }
    }

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

    /// Returns group, version and kind of the response of a subresource.
    pub fn response_type(&self, part: Subresource) -> (&str, &str, &str) {
        match part {
            Subresource::Attach => ("", "v1", "PodAttachOptions"),
            Subresource::Binding => ("", "v1", "Binding"),
            Subresource::Eviction => ("policy", "v1", "Eviction"),
            Subresource::Exec => ("", "v1", "PodExecOptions"),
            Subresource::PortForward => ("", "v1", "PodPortForwardOptions"),
            Subresource::Proxy => match &*self.storage {
                "nodes" => ("", "v1", "NodeProxyOptions"),
                "pods" => ("", "v1", "PodProxyOptions"),
                _ => ("", "v1", "ServiceProxyOptions"),
            },
            Subresource::Scale => ("autoscaling", "v1", "Scale"),
            Subresource::Token => ("authentication.k8s.io", "v1", "TokenRequest"),
            Subresource::Approval
            | Subresource::EphemeralContainers
            | Subresource::Finalize
            | Subresource::Log
            | Subresource::Resize
            | Subresource::Status => (&self.group, &self.version, &self.kind),
        }
    }

    /// Returns the `apiVersion` of bodies.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns the resource with its group, as in messages: `statefulsets.apps`.
    pub fn group_resource(&self) -> String {
        with_group(&self.plural, &self.group)
    }

    /// Returns the kind with its group, as in messages: `StatefulSet.apps`.
    pub fn group_kind(&self) -> String {
        with_group(&self.kind, &self.group)
    }

    /// Returns the kind of lists.
    pub fn list_kind(&self) -> String {
        match &self.custom {
            Some(custom) => custom.list_kind.clone(),
            None => format!("{}List", self.kind),
        }
    }

    /// Returns the paths of `/scale` in a custom resource, if it has that.
    pub fn scale(&self) -> Option<&Scale> {
        self.custom.as_ref()?.scale.as_ref()
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
