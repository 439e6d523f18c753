//! The paths of the documents: which operations each resource has, and what they take.

use serde_json::{Map, Value, json};

use crate::kinds;

/// The paths of a group version's resources.
pub(super) fn of(group: &str, version: &str) -> Map<String, Value> {
    let mut paths = Map::new();
    for kind in kinds::KINDS
        .iter()
        .filter(|k| k.group == group && k.version == version)
    {
        let namespace = if kind.namespaced { "{namespace}" } else { "" };
        let patch = json!({
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": {
                "group": kind.group,
                "version": kind.version,
                "kind": kind.kind,
            },
            "parameters": [{
                "name": "fieldValidation",
                "in": "query",
                "schema": {"type": "string"},
            }],
            "responses": {"200": {"description": "OK"}},
        });
        paths.insert(
            kind.object_path(namespace, "{name}"),
            json!({"patch": patch}),
        );
    }
    paths
}
