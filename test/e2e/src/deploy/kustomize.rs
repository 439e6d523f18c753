//! What `kubectl kustomize` makes of a folder, as far as the shipped ones go: resources, further
//! resources of components, a namespace where none is set, patches of a Deployment's pod template.
//! Anything else in a kustomization is an error.

use std::path::Path;

use kube_apimachinery::strategic_merge;
use serde_json::{Map, Value};

use super::{documents, is_cluster_scoped};

/// The objects of a kustomization.
///
/// # Panics
///
/// A file can't be read or holds what isn't known here.
pub fn build(folder: &Path) -> Vec<Value> {
    let kustomization = only(&folder.join("kustomization.yaml"));
    let mut objects = Vec::new();
    let (mut namespace, mut patches) = (None, Vec::new());
    for (member, value) in members(&kustomization) {
        match member.as_str() {
            "apiVersion" | "kind" => {}
            "resources" | "components" => {
                for entry in texts(value) {
                    objects.extend(resources(&folder.join(entry)));
                }
            }
            "transformers" => namespace = texts(value).first().map(|file| folder.join(file)),
            "patches" => {
                let entries = value.as_array().map_or(&[][..], Vec::as_slice);
                patches = entries
                    .iter()
                    .map(|entry| only(&folder.join(entry["path"].as_str().unwrap_or_default())))
                    .collect();
            }
            other => panic!("{}: {other} is not known here", folder.display()),
        }
    }
    if let Some(file) = namespace {
        let transformer = only(&file);
        for object in &mut objects {
            put_into_namespace(object, &transformer);
        }
    }
    for patch in &patches {
        let patched = objects
            .iter_mut()
            .find(|object| {
                object["kind"] == patch["kind"]
                    && object["metadata"]["name"] == patch["metadata"]["name"]
            })
            .unwrap_or_else(|| panic!("{}: nothing to patch", folder.display()));
        patch_template(patched, patch);
    }
    // What others stand in comes first, as kustomize has it.
    objects.sort_by_key(|object| object["kind"] != "Namespace");
    objects
}

/// The objects of a file, or of a folder that is a kustomization itself.
fn resources(path: &Path) -> Vec<Value> {
    if path.is_dir() {
        build(path)
    } else {
        documents(&read(path), &path.display().to_string())
    }
}

/// As a `NamespaceTransformer` does with `unsetOnly` and `allServiceAccounts`.
fn put_into_namespace(object: &mut Value, transformer: &Value) {
    assert_eq!(transformer["kind"], "NamespaceTransformer");
    assert_eq!(transformer["unsetOnly"], true);
    assert_eq!(transformer["setRoleBindingSubjects"], "allServiceAccounts");
    let namespace = &transformer["metadata"]["namespace"];
    let is_namespaced = !object["kind"].as_str().is_none_or(is_cluster_scoped);
    if is_namespaced && object["metadata"].get("namespace").is_none() {
        object["metadata"]["namespace"] = namespace.clone();
    }
    let subjects = object.get_mut("subjects").and_then(Value::as_array_mut);
    for subject in subjects.into_iter().flatten() {
        subject["namespace"] = namespace.clone();
    }
}

/// Patches the pod template, which is all that the shipped patches change.
fn patch_template(object: &mut Value, patch: &Value) {
    let changed: Vec<&String> = members(&patch["spec"]).map(|(member, _)| member).collect();
    assert_eq!(changed, ["template"], "a patch changes something else");
    let template = &mut object["spec"]["template"];
    let patched = strategic_merge::apply("PodTemplateSpec", template, &patch["spec"]["template"]);
    *template = patched.unwrap_or_else(|error| panic!("{error}"));
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The one document of a file.
fn only(path: &Path) -> Value {
    let mut documents = documents(&read(path), &path.display().to_string());
    assert_eq!(documents.len(), 1, "{}", path.display());
    documents.remove(0)
}

fn members(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flat_map(Map::iter)
}

fn texts(list: &Value) -> Vec<&str> {
    let entries = list.as_array().into_iter().flatten();
    entries.filter_map(Value::as_str).collect()
}
