//! Aggregated discovery: one document for the core group and one for all others.

use std::sync::Arc;

use kube_test_control_plane_api::kinds::{self, Kind, Subresource};
use serde_json::{Value, json};

use super::legacy::names;

/// Returns the document of the core group, or of all other groups.
pub(super) fn discovery(rows: &[Arc<Kind>], is_core: bool) -> Value {
    let mut items: Vec<Value> = Vec::new();
    let mut last = None;
    for (group, version) in kinds::group_versions(rows) {
        if group.is_empty() != is_core {
            continue;
        }
        let found = json!({
            "version": version,
            "resources": resources(rows, group, version),
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

fn resources(rows: &[Arc<Kind>], group: &str, version: &str) -> Vec<Value> {
    rows.iter()
        .filter(|k| k.group == group && k.version == version)
        .map(|kind| resource(kind))
        .collect()
}

fn resource(kind: &Kind) -> Value {
    let mut value = json!({
        "resource": kind.plural,
        // The response kind omits the resource's own group version.
        "responseKind": own(kind, &kind.kind),
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": names(&kind.verbs),
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

/// Returns a response kind in the resource's own group version, which only custom resources name.
fn own(kind: &Kind, responds: &str) -> Value {
    let (group, version) = match &kind.custom {
        Some(_) => (&*kind.group, &*kind.version),
        None => ("", ""),
    };
    json!({"group": group, "version": version, "kind": responds})
}

fn subresource(kind: &Kind, subresource: Subresource) -> Value {
    let (group, version, responds) = kind.response_type(subresource);
    let response = if (group, version) == (&*kind.group, &*kind.version) {
        own(kind, responds)
    } else {
        json!({"group": group, "version": version, "kind": responds})
    };
    json!({
        "subresource": subresource.name(),
        "responseKind": response,
        "verbs": names(subresource.verbs()),
    })
}
