//! Existence of owners of any kind, by the server's list of resources.

use serde::Deserialize;

use super::Server;
use crate::model::Owner;

/// The resources of a group and version.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Resources {
    resources: Vec<Served>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Served {
    name: String,
    kind: String,
    namespaced: bool,
}

#[derive(Deserialize)]
struct Named {
    metadata: Identity,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Identity {
    uid: String,
}

/// Reports whether the owner of an object in this namespace exists, with its uid; `None` if the
/// server can't be asked or doesn't know the kind.
pub(crate) async fn owner_exists(server: &Server, namespace: &str, owner: &Owner) -> Option<bool> {
    let base = match owner.api_version.split_once('/') {
        Some(_) => format!("/apis/{}", owner.api_version),
        None => format!("/api/{}", owner.api_version),
    };
    let text = server.read(&base).await.ok()?;
    let served: Resources = serde_json::from_str(&text).ok()?;
    let is_kind = |it: &&Served| it.kind == owner.kind && !it.name.contains('/');
    let resource = served.resources.iter().find(is_kind)?;
    let (plural, name) = (&resource.name, &owner.name);
    let path = if resource.namespaced {
        format!("{base}/namespaces/{namespace}/{plural}/{name}")
    } else {
        format!("{base}/{plural}/{name}")
    };
    match server.read(&path).await {
        Ok(text) => {
            let found: Named = serde_json::from_str(&text).ok()?;
            Some(found.metadata.uid == owner.uid)
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Some(false),
        Err(_) => None,
    }
}
