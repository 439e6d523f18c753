//! As much of an `OpenAPI` document as kubectl needs to leave validation to the server: for each
//! kind a PATCH that takes `fieldValidation`. Types are not described.

use serde_json::{Map, Value, json};

use crate::kinds::{self, Verb};

/// The documents by group version.
pub(super) fn index() -> Value {
    let paths: Map<String, Value> = kinds::group_versions()
        .into_iter()
        .map(|(group, version)| {
            let path = if group.is_empty() {
                format!("api/{version}")
            } else {
                format!("apis/{group}/{version}")
            };
            let url = json!({"serverRelativeURL": format!("/openapi/v3/{path}")});
            (path, url)
        })
        .collect();
    json!({"paths": paths})
}

/// The document of one group version.
pub(super) fn document(group: &str, version: &str) -> Value {
    let mut paths = Map::new();
    for kind in kinds::KINDS
        .iter()
        .filter(|k| k.group == group && k.version == version && k.allows(Verb::Patch))
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
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.2"},
        "paths": paths,
        "components": {"schemas": {}},
    })
}
