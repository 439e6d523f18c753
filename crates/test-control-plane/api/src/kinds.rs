//! The served kinds as data: a new kind is a new row.

mod custom;
mod kind;
mod subresource;
mod table;
mod target;
mod verb;
mod zero;

use std::sync::Arc;

use kube_apimachinery::schema::{Type, Version};

pub use custom::of_definition;
pub use kind::{Field, Kind, NameRule, Rounds, Trait};
pub use subresource::Subresource;
use table::ROWS;
pub use table::{BINDING, EVICTION, KINDS, SCALE, TOKEN_REQUEST};
pub use target::Target;
pub use verb::Verb;
pub use zero::zero;

/// Finds the row of a resource in a URL.
pub fn by_resource(group: &str, version: &str, plural: &str) -> Option<&'static Arc<Kind>> {
    let mut rows = KINDS.iter();
    rows.find(|k| k.group == group && k.version == version && k.plural == plural)
}

/// Finds the row of a kind in a body.
pub fn by_kind(api_version: &str, kind: &str) -> Option<&'static Arc<Kind>> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let mut rows = KINDS.iter();
    rows.find(|k| k.group == group && k.version == version && k.kind == kind)
}

/// Finds the row that stores objects under this storage name.
pub fn by_storage(storage: &str) -> Option<&'static Arc<Kind>> {
    let mut rows = KINDS.iter();
    rows.find(|k| &*k.storage == storage && !k.has(Trait::View))
}

/// Returns the schema type of a kind, with the fields of the newest version. Those that the
/// emulated version lacks are dropped when an object is normalized.
pub(crate) fn type_of(kind: &Kind) -> Option<&'static Type> {
    type_in(kind, Version::NEWEST)
}

/// Returns the schema type of a kind in a version.
pub(crate) fn type_in(kind: &Kind, version: Version) -> Option<&'static Type> {
    version.type_of_kind(&kind.api_version(), &kind.kind)
}

/// Returns the row by which objects of `kind` are handled before they are stored. A custom resource
/// is handled in the version of the request.
pub fn stored(kind: &Arc<Kind>) -> &Arc<Kind> {
    let built_in = by_storage(&kind.storage).filter(|_| kind.custom.is_none());
    built_in.unwrap_or(kind)
}

/// Returns the object's key in upstream's storage, for error messages.
pub fn registry_key(kind: &Kind, namespace: &str, name: &str) -> String {
    let custom;
    let directory = match &*kind.storage {
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

/// Returns true if objects of this storage name are admission policies or their bindings.
pub fn is_admission_policy(storage: &str) -> bool {
    matches!(
        storage,
        "mutatingadmissionpolicies"
            | "mutatingadmissionpolicybindings"
            | "validatingadmissionpolicies"
            | "validatingadmissionpolicybindings"
    )
}

/// Returns true if objects of this storage name are configurations of webhooks.
pub fn is_webhook_configuration(storage: &str) -> bool {
    matches!(
        storage,
        "mutatingwebhookconfigurations" | "validatingwebhookconfigurations"
    )
}

/// Returns the group versions of some rows, in their order.
pub fn group_versions<'a>(
    rows: impl IntoIterator<Item = &'a Arc<Kind>>,
) -> Vec<(&'a str, &'a str)> {
    let mut found = Vec::new();
    for kind in rows {
        let group_version = (&*kind.group, &*kind.version);
        if !found.contains(&group_version) {
            found.push(group_version);
        }
    }
    found
}
