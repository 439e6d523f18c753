//! Server-side apply of manifests.

use http::Method;
use kube_test_control_plane_server::server::ApiServer;
use serde_json::Value;

use crate::manifests::{Manifest, ManifestError};

/// The field manager of applied objects, and their user agent.
const MANAGER: &str = "test-control-plane";

/// Applies objects: definitions first, then namespaces, then the others.
pub(super) async fn apply_all(
    server: &ApiServer,
    mut manifests: Vec<Manifest>,
) -> Result<(), ManifestError> {
    manifests.sort_by_key(|manifest| match manifest.text("/kind") {
        "CustomResourceDefinition" => 0,
        "Namespace" => 1,
        _ => 2,
    });
    for manifest in &manifests {
        apply(server, manifest).await?;
    }
    Ok(())
}

async fn apply(server: &ApiServer, manifest: &Manifest) -> Result<(), ManifestError> {
    let path = path(server, manifest).await?;
    let path = format!("{path}?fieldManager={MANAGER}&force=true");
    let (code, answer) = server.apply_json(&path, MANAGER, &manifest.value).await;
    if !(200..300).contains(&code) {
        let message = answer.pointer("/message").and_then(Value::as_str);
        let message = message.map_or_else(|| format!("status {code}"), str::to_owned);
        return Err(manifest.refused(message));
    }
    if manifest.is_definition() {
        check_established(server, manifest).await?;
    }
    Ok(())
}

/// Returns the object's path, which discovery gives.
async fn path(server: &ApiServer, manifest: &Manifest) -> Result<String, ManifestError> {
    let (version, kind) = (manifest.text("/apiVersion"), manifest.text("/kind"));
    let group_version = if version.contains('/') {
        format!("/apis/{version}")
    } else {
        format!("/api/{version}")
    };
    let (_, served) = server
        .call_json(Method::GET, &group_version, MANAGER, &Value::Null)
        .await;
    let resources = served.get("resources").and_then(Value::as_array);
    let named = |resource: &&Value| {
        let name = resource.get("name").and_then(Value::as_str);
        let is_whole = name.is_some_and(|name| !name.contains('/'));
        is_whole && resource.get("kind").and_then(Value::as_str) == Some(kind)
    };
    let Some(resource) = resources.into_iter().flatten().find(named) else {
        return Err(manifest.refused(format!(
            "no matches for kind {kind:?} in version {version:?}; ensure CRDs are installed first"
        )));
    };
    let plural = resource.get("name").and_then(Value::as_str);
    let (plural, name) = (plural.unwrap_or_default(), manifest.text("/metadata/name"));
    if resource.get("namespaced") != Some(&Value::Bool(true)) {
        return Ok(format!("{group_version}/{plural}/{name}"));
    }
    let namespace = match manifest.text("/metadata/namespace") {
        "" => "default",
        namespace => namespace,
    };
    Ok(format!(
        "{group_version}/namespaces/{namespace}/{plural}/{name}"
    ))
}

/// Checks that a definition is served. Its status follows the write at once.
async fn check_established(server: &ApiServer, manifest: &Manifest) -> Result<(), ManifestError> {
    let path = path(server, manifest).await?;
    let (_, stored) = server
        .call_json(Method::GET, &path, MANAGER, &Value::Null)
        .await;
    let conditions = stored
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    let of = |condition: &&Value, name: &str| condition.get("type") == Some(&Value::from(name));
    if conditions
        .clone()
        .any(|it| of(&it, "Established") && it.get("status") == Some(&Value::from("True")))
    {
        return Ok(());
    }
    let refused = conditions.find(|it| of(it, "NamesAccepted"));
    let why = refused.and_then(|it| it.get("message")?.as_str());
    let why = why.unwrap_or("its names are not accepted");
    Err(manifest.refused(format!("the definition isn't served: {why}")))
}
