//! The change to plan, as requests to an API server.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use http::Request;
use kube::Client;
use serde_json::{Map, Value, json};

use super::situation::Situation;
use crate::server::{DryVerb, JSON};

/// Format of patches that match containers by name.
const STRATEGIC: &str = "application/strategic-merge-patch+json";
/// Format of patches that replace lists.
pub(super) const MERGE: &str = "application/merge-patch+json";
/// Format of server-side apply.
const APPLY: &str = "application/apply-patch+yaml";
/// Annotation with the manifest that `kubectl apply` used last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

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
        (None, _) => bail!("it contains no StatefulSet of apps/v1"),
        (Some(_), Some(_)) => bail!("it contains several StatefulSets: plan them one by one"),
    }
}

/// The text at a pointer; empty without one.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// One part of the change, as a request for the set.
pub(super) struct Part {
    pub(super) verb: DryVerb,
    pub(super) query: &'static str,
    pub(super) format: &'static str,
    pub(super) body: Value,
}

impl Part {
    fn patch(body: Value) -> Self {
        Self {
            verb: DryVerb::Patch,
            query: "",
            format: STRATEGIC,
            body,
        }
    }
}

/// The parts of the change, in the order in which they are made.
///
/// # Errors
///
/// An argument doesn't fit the set.
pub(super) fn parts(situation: &Situation<'_>) -> anyhow::Result<Vec<Part>> {
    let arguments = situation.arguments;
    let live = situation.snapshot.set.as_ref();
    let live: Option<Value> = live
        .map(|set| serde_json::from_str(&set.text).context("decode the set"))
        .transpose()?;
    let mut parts = Vec::new();
    if let Some(file) = situation.file {
        parts.push(match &live {
            None => Part {
                verb: DryVerb::Create,
                query: "",
                format: JSON,
                body: file.clone(),
            },
            Some(live) => match last_applied(live) {
                Some(last) => Part::patch(three_way(&last, file)),
                None => Part {
                    verb: DryVerb::Patch,
                    query: "fieldManager=kubectl&force=true",
                    format: APPLY,
                    body: file.clone(),
                },
            },
        });
    }
    if let Some(replicas) = arguments.replicas {
        parts.push(Part::patch(json!({"spec": {"replicas": replicas}})));
    }
    for image in &arguments.image {
        let (container, image) = image
            .split_once('=')
            .ok_or_else(|| anyhow!("--image {image}: expected CONTAINER=IMAGE"))?;
        check_container(live.iter().chain(situation.file), container)?;
        let container = json!({"name": container, "image": image});
        let spec = json!({"containers": [container]});
        parts.push(Part::patch(json!({"spec": {"template": {"spec": spec}}})));
    }
    if let Some(patch) = &arguments.patch {
        let patch = serde_saphyr::from_str(patch).context("parse --patch")?;
        parts.push(Part::patch(patch));
    }
    if let Some(wanted) = arguments.rollback {
        parts.push(Part::patch(revision(situation, wanted)?));
    }
    Ok(parts)
}

/// Makes the change on a copy, and returns the changed set.
///
/// # Errors
///
/// The copy's server rejects a part, for the reason in the error.
pub(super) async fn make(
    client: &Client,
    situation: &Situation<'_>,
    parts: &[Part],
) -> anyhow::Result<Value> {
    let sets = format!(
        "/apis/apps/v1/namespaces/{}/statefulsets",
        situation.namespace
    );
    let path = format!("{sets}/{}", situation.name);
    for part in parts {
        let (method, path) = match part.verb {
            DryVerb::Create => ("POST", &sets),
            DryVerb::Update => ("PUT", &path),
            DryVerb::Patch => ("PATCH", &path),
        };
        let target = match part.query {
            "" => path.clone(),
            query => format!("{path}?{query}"),
        };
        send(client, method, &target, part.format, &part.body).await?;
    }
    send(client, "GET", &path, JSON, &Value::Null).await
}

/// The manifest that `kubectl apply` recorded.
fn last_applied(live: &Value) -> Option<Value> {
    let annotations = live.pointer("/metadata/annotations")?;
    serde_json::from_str(annotations.get(LAST_APPLIED)?.as_str()?).ok()
}

/// The patch of `kubectl apply`: the fields of the manifest, and the removal of those that only
/// the last applied one had. Elements of lists are matched by name.
fn three_way(last: &Value, file: &Value) -> Value {
    let mut patch = removals(last, file);
    if let Some(metadata) = patch.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|member, _| member == "labels" || member == "annotations");
    }
    patch
}

fn removals(last: &Value, file: &Value) -> Value {
    match (last, file) {
        (Value::Object(last), Value::Object(file)) => {
            let mut merged = file.clone();
            for (member, value) in last {
                let next = match file.get(member) {
                    Some(next) => removals(value, next),
                    None => Value::Null,
                };
                merged.insert(member.clone(), next);
            }
            Value::Object(merged)
        }
        (Value::Array(last), Value::Array(file)) => {
            let name = |element: &Value| element.get("name").cloned();
            let mut merged: Vec<Value> = Vec::new();
            for next in file {
                let same = |it: &&Value| name(it).is_some() && name(it) == name(next);
                merged.push(
                    last.iter()
                        .find(same)
                        .map_or_else(|| next.clone(), |before| removals(before, next)),
                );
            }
            let gone = last.iter().filter_map(name);
            let gone = gone.filter(|gone| file.iter().all(|it| name(it).as_ref() != Some(gone)));
            let deleted = gone.map(|name| json!({"name": name, "$patch": "delete"}));
            merged.extend(deleted);
            Value::Array(merged)
        }
        _ => file.clone(),
    }
}

/// The set with the spec, labels and annotations of another state.
pub(super) fn with_content(mut set: Value, content: &Value) -> Value {
    if let Some(members) = set.as_object_mut() {
        members.insert(
            "spec".to_owned(),
            content.get("spec").cloned().unwrap_or_default(),
        );
    }
    for member in ["labels", "annotations"] {
        let metadata = set.get_mut("metadata").and_then(Value::as_object_mut);
        let wanted = content.pointer(&format!("/metadata/{member}"));
        let Some(metadata) = metadata else {
            continue;
        };
        match wanted {
            Some(wanted) => drop(metadata.insert(member.to_owned(), wanted.clone())),
            None => drop(metadata.remove(member)),
        }
    }
    set
}

/// The merge patch from one state to another.
pub(super) fn merge_patch(old: &Value, new: &Value) -> Value {
    let (Some(before), Some(after)) = (old.as_object(), new.as_object()) else {
        return new.clone();
    };
    let mut patch = Map::new();
    for member in before.keys().filter(|it| !after.contains_key(*it)) {
        patch.insert(member.clone(), Value::Null);
    }
    for (member, value) in after {
        match before.get(member) {
            Some(same) if same == value => {}
            Some(other) => drop(patch.insert(member.clone(), merge_patch(other, value))),
            None => drop(patch.insert(member.clone(), value.clone())),
        }
    }
    Value::Object(patch)
}

/// A new set with the content of another state.
pub(crate) fn new_set(name: &str, content: &Value) -> Value {
    let empty = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
    });
    with_content(empty, content)
}

fn check_container<'a>(sets: impl Iterator<Item = &'a Value>, wanted: &str) -> anyhow::Result<()> {
    let containers = |set: &'a Value| {
        let containers = set.pointer("/spec/template/spec/containers");
        let containers = containers.and_then(Value::as_array).into_iter().flatten();
        containers.map(|container| text(container, "/name"))
    };
    let names: BTreeSet<&str> = sets.flat_map(containers).collect();
    if names.contains(wanted) {
        return Ok(());
    }
    let names: Vec<&str> = names.into_iter().collect();
    bail!(
        "the template has no container {wanted}; its containers are {}",
        names.join(", ")
    )
}

/// The recorded data of a revision.
fn revision(situation: &Situation<'_>, wanted: i64) -> anyhow::Result<Value> {
    let set = situation.snapshot.set.as_ref();
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

/// Sends a request to the copy's server and returns the response.
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
        Err(kube::Error::Api(status)) => Err(anyhow!("{}", status.message)),
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
        assert_eq!(error.to_string(), "it contains no StatefulSet of apps/v1");
    }

    #[test]
    fn merge_patch_holds_only_the_difference() {
        let old = json!({"a": 1, "b": {"c": 2, "d": [1]}, "e": 3});
        let new = json!({"a": 1, "b": {"c": 2, "d": [2]}, "f": {"g": 4}});
        let patch = json!({"b": {"d": [2]}, "e": null, "f": {"g": 4}});
        assert_eq!(merge_patch(&old, &new), patch);
    }

    #[test]
    fn members_removed_from_a_manifest_are_removed() {
        let set = |containers: Value, more: Value| {
            let mut spec = json!({"template": {"spec": {"containers": containers}}});
            if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
                spec.extend(more.clone());
            }
            json!({"kind": "StatefulSet", "metadata": {"name": "web"}, "spec": spec})
        };
        let last = set(
            json!([{"name": "app", "image": "app:1", "tty": true}, {"name": "log"}]),
            json!({"minReadySeconds": 5}),
        );
        let file = set(json!([{"name": "app", "image": "app:2"}]), json!({}));
        let patch = three_way(&last, &file);
        let containers = json!([
            {"name": "app", "image": "app:2", "tty": null},
            {"name": "log", "$patch": "delete"},
        ]);
        assert_eq!(patch["spec"]["template"]["spec"]["containers"], containers);
        assert_eq!(patch["spec"]["minReadySeconds"], Value::Null);
        assert_eq!(patch["metadata"], json!({}));
    }
}
