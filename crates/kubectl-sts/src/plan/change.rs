//! The change to plan, as requests to the embedded API server.

use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use http::Request;
use kube::Client;
use serde_json::{Value, json};

use super::world::Situation;

/// Format of patches that match containers by name.
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// Reads the set of a manifest; other documents are skipped.
///
/// # Errors
///
/// The file can't be read, is not YAML, or holds no set or several.
pub(super) fn read_file(path: &Path) -> anyhow::Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    parse(&text).with_context(|| format!("use {}", path.display()))
}

fn parse(text: &str) -> anyhow::Result<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).context("parse the YAML")?;
    let is_set = |it: &Value| it["kind"] == "StatefulSet" && it["apiVersion"] == "apps/v1";
    let mut sets = documents.into_iter().filter(is_set);
    match (sets.next(), sets.next()) {
        (Some(set), None) => Ok(set),
        (None, _) => bail!("it holds no StatefulSet of apps/v1"),
        (Some(_), Some(_)) => bail!("it holds several StatefulSets: plan them one by one"),
    }
}

/// The text at a pointer; empty without one.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Makes the change.
///
/// # Errors
///
/// The change doesn't fit the set, or the server refuses it.
pub(super) async fn make(client: &Client, situation: &Situation<'_>) -> anyhow::Result<()> {
    let Situation {
        namespace,
        name,
        arguments,
        ..
    } = situation;
    let sets = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets");
    let path = format!("{sets}/{name}");
    if let Some(file) = situation.file {
        if situation.snapshot.sets.is_empty() {
            send(client, "POST", &sets, "application/json", file).await?;
        } else {
            let live = send(client, "GET", &path, "application/json", &Value::Null).await?;
            let wanted = replaced(live, file);
            send(client, "PUT", &path, "application/json", &wanted).await?;
        }
    }
    if let Some(replicas) = arguments.replicas {
        let patch = json!({"spec": {"replicas": replicas}});
        send(client, "PATCH", &path, STRATEGIC, &patch).await?;
    }
    for image in &arguments.image {
        let (container, image) = image
            .split_once('=')
            .ok_or_else(|| anyhow!("--image {image}: expected CONTAINER=IMAGE"))?;
        let live = send(client, "GET", &path, "application/json", &Value::Null).await?;
        check_container(&live, container)?;
        let patch = json!({"spec": {"template": {"spec": {
            "containers": [{"name": container, "image": image}]}}}});
        send(client, "PATCH", &path, STRATEGIC, &patch).await?;
    }
    if let Some(patch) = &arguments.patch {
        let patch: Value = serde_saphyr::from_str(patch).context("parse --patch")?;
        send(client, "PATCH", &path, STRATEGIC, &patch).await?;
    }
    if let Some(wanted) = arguments.rollback {
        let data = revision(situation, wanted)?;
        send(client, "PATCH", &path, STRATEGIC, &data).await?;
    }
    Ok(())
}

/// The live set with the members of a manifest. Replicas that the manifest leaves out stay.
fn replaced(mut live: Value, file: &Value) -> Value {
    let mut spec = file.get("spec").cloned().unwrap_or_default();
    let replicas = live.pointer("/spec/replicas").cloned();
    if let (Some(spec), Some(replicas)) = (spec.as_object_mut(), replicas)
        && spec.get("replicas").is_none_or(Value::is_null)
    {
        spec.insert("replicas".to_owned(), replicas);
    }
    for member in ["labels", "annotations"] {
        let added = file.pointer(&format!("/metadata/{member}"));
        let metadata = live.get_mut("metadata").and_then(Value::as_object_mut);
        let (Some(added), Some(metadata)) = (added.and_then(Value::as_object), metadata) else {
            continue;
        };
        let present = metadata.entry(member).or_insert_with(|| json!({}));
        if let Some(present) = present.as_object_mut() {
            present.extend(added.clone());
        }
    }
    if let Some(live) = live.as_object_mut() {
        live.insert("spec".to_owned(), spec);
    }
    live
}

fn check_container(set: &Value, wanted: &str) -> anyhow::Result<()> {
    let containers = set
        .pointer("/spec/template/spec/containers")
        .and_then(Value::as_array);
    let names: Vec<&str> = containers
        .into_iter()
        .flatten()
        .filter_map(|container| container["name"].as_str())
        .collect();
    if names.contains(&wanted) {
        return Ok(());
    }
    bail!(
        "the template has no container {wanted}; its containers are {}",
        names.join(", ")
    )
}

/// The recorded data of a revision.
fn revision(situation: &Situation<'_>, wanted: i64) -> anyhow::Result<Value> {
    let set = situation.snapshot.sets.first();
    let revisions = set.map_or_else(Vec::new, |set| situation.snapshot.revisions_of(&set.object));
    let found = revisions
        .iter()
        .find(|revision| revision.revision == wanted);
    let found = found.map(|revision| revision.data.clone());
    found.ok_or_else(|| {
        let known: Vec<String> = revisions.iter().map(|it| it.revision.to_string()).collect();
        anyhow!(
            "{} has no revision {wanted}; its revisions are {}",
            situation.name,
            known.join(", ")
        )
    })
}

/// Sends a request and returns the answer.
pub(super) async fn send(
    client: &Client,
    method: &str,
    path: &str,
    format: &str,
    body: &Value,
) -> anyhow::Result<Value> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", format)
        .body(body.to_string().into_bytes())?;
    match client.request_text(request).await {
        Ok(text) => serde_json::from_str(&text).context("decode the answer"),
        Err(kube::Error::Api(status)) => Err(anyhow!(
            "the server would refuse the change: {}",
            status.message
        )),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifest_may_hold_other_documents() {
        let text =
            "kind: Service\n---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: web}\n";
        let set = parse(text).expect("the manifest holds a set");
        assert_eq!(super::text(&set, "/metadata/name"), "web");
        let error = parse("kind: Service\n").expect_err("it holds no set");
        assert_eq!(error.to_string(), "it holds no StatefulSet of apps/v1");
    }

    #[test]
    fn omitted_replicas_stay() {
        let live = json!({"metadata": {"uid": "u"}, "spec": {"replicas": 5, "paused": true}});
        let file = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"serviceName": "web"}});
        let wanted = json!({
            "metadata": {"uid": "u", "labels": {"a": "b"}},
            "spec": {"replicas": 5, "serviceName": "web"},
        });
        assert_eq!(replaced(live, &file), wanted);
    }
}
