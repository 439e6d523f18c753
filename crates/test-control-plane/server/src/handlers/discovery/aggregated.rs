//! Aggregated discovery: one document for the core group and one for all others.

use kube_test_control_plane_api::kinds::{self, Kind, Subresource};
use serde_json::{Value, json};

use super::legacy::names;

/// Returns the document of the core group, or of all other groups.
pub(super) fn discovery(is_core: bool) -> Value {
    let mut items: Vec<Value> = Vec::new();
    let mut last = None;
    for (group, version) in kinds::group_versions() {
        if group.is_empty() != is_core {
            continue;
        }
        let found = json!({
            "version": version,
            "resources": resources(group, version),
            "freshness": "Current",
        });
        if last == Some(group)
            && let Some(versions) = items
                .last_mut()
                .and_then(|item| item["versions"].as_array_mut())
        {
            versions.push(found);
        } else {
            let metadata = if is_core {
                json!({})
            } else {
                json!({"name": group})
            };
            items.push(json!({"metadata": metadata, "versions": [found]}));
            last = Some(group);
        }
    }
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn resources(group: &str, version: &str) -> Vec<Value> {
    kinds::KINDS
        .iter()
        .filter(|k| k.group == group && k.version == version)
        .map(resource)
        .collect()
}

fn resource(kind: &Kind) -> Value {
    let mut value = json!({
        "resource": kind.plural,
        // The response kind omits the resource's own group version.
        "responseKind": {"group": "", "version": "", "kind": kind.kind},
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": names(kind.verbs),
    });
    if !kind.short_names.is_empty() {
        value["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        value["categories"] = json!(kind.categories);
    }
    if !kind.subresources.is_empty() {
        let subresources = kind.subresources.iter().map(|s| subresource(kind, *s));
        value["subresources"] = subresources.collect();
    }
    value
}

fn subresource(kind: &Kind, subresource: Subresource) -> Value {
    let (group, version, responds) = subresource.responds(kind);
    let (group, version) = if (group, version) == (kind.group, kind.version) {
        ("", "")
    } else {
        (group, version)
    };
    json!({
        "subresource": subresource.name(),
        "responseKind": {"group": group, "version": version, "kind": responds},
        "verbs": names(subresource.verbs()),
    })
}
