//! Unaggregated discovery: a document for each group and each group version.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest;
use serde_json::{Value, json};

use kube_test_control_plane_api::kinds::{self, Kind, Subresource, Trait, Verb};

/// `/api`.
pub(super) fn core_versions(host: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}],
    })
}

/// `/apis`.
pub(super) fn groups(rows: &[Arc<Kind>]) -> Value {
    let mut names: Vec<&str> = Vec::new();
    for (group, _) in kinds::group_versions(rows) {
        if !group.is_empty() && !names.contains(&group) {
            names.push(group);
        }
    }
    json!({
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": names.into_iter().map(|name| members_of(rows, name)).collect::<Vec<_>>(),
    })
}

/// `/apis/GROUP`.
pub(super) fn group(rows: &[Arc<Kind>], group: &str) -> Value {
    let mut value = members_of(rows, group);
    value["kind"] = json!("APIGroup");
    value["apiVersion"] = json!("v1");
    value
}

fn members_of(rows: &[Arc<Kind>], group: &str) -> Value {
    let versions: Vec<Value> = kinds::group_versions(rows)
        .into_iter()
        .filter(|(g, _)| *g == group)
        .map(|(_, version)| {
            json!({"groupVersion": format!("{group}/{version}"), "version": version})
        })
        .collect();
    json!({"name": group, "preferredVersion": versions.first(), "versions": versions})
}

/// `/api/v1` and `/apis/GROUP/VERSION`.
pub(super) fn resources(rows: &[Arc<Kind>], group: &str, version: &str) -> Value {
    let mut list = Vec::new();
    for kind in rows
        .iter()
        .filter(|k| k.group == group && k.version == version)
    {
        list.push(resource(kind));
        list.extend(kind.subresources.iter().map(|s| subresource(kind, *s)));
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    let mut value = json!({
        "kind": "APIResourceList",
        "groupVersion": group_version,
        "resources": list,
    });
    if !group.is_empty() {
        value["apiVersion"] = json!("v1");
    }
    value
}

fn resource(kind: &Kind) -> Value {
    let mut value = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": names(&kind.verbs),
    });
    if !kind.short_names.is_empty() {
        value["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        value["categories"] = json!(kind.categories);
    }
    if !kind.has(Trait::Virtual) {
        value["storageVersionHash"] = json!(storage_version_hash(kind));
    }
    value
}

/// Returns the hash of the storage version.
fn storage_version_hash(kind: &Kind) -> String {
    let stored = kinds::by_storage(&kind.storage).map_or(kind, |row| &**row);
    let version = match &kind.custom {
        Some(custom) => custom.stored_version.clone(),
        None => format!("{}/{}", stored.group, stored.version),
    };
    let name = format!("{version}/{}", stored.kind);
    let hash = digest::digest(&digest::SHA256, name.as_bytes());
    STANDARD.encode(&hash.as_ref()[..8])
}

fn subresource(kind: &Kind, subresource: Subresource) -> Value {
    let (group, version, responds) = kind.response_type(subresource);
    let mut value = json!({
        "name": format!("{}/{}", kind.plural, subresource.name()),
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": responds,
        "verbs": names(subresource.verbs()),
    });
    if (group, version) != (&*kind.group, &*kind.version) {
        value["group"] = json!(group);
        value["version"] = json!(version);
    }
    value
}

/// Returns the names of verbs.
pub(super) fn names(verbs: &[Verb]) -> Vec<&'static str> {
    verbs.iter().map(|verb| verb.name()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_version_hash_matches_kubernetes() {
        let hash =
            |group, plural| storage_version_hash(kinds::by_resource(group, "v1", plural).unwrap());
        assert_eq!(hash("", "configmaps"), "qFsyl6wFWjQ=");
        assert_eq!(hash("apps", "statefulsets"), "H+vl74LkKdo=");
        // Events of both groups are stored in the core group's version.
        assert_eq!(hash("events.k8s.io", "events"), "r2yiGXH7wu8=");
    }
}
