//! Rendering like `kubectl kustomize`, limited to features of the shipped folders: resources, an
//! additional component, a namespace where none is set, patches of a Deployment's pod template,
//! fields copied between objects. Any other feature is an error.

use std::path::Path;

use kube_apimachinery::strategic_merge;
use serde_json::{Map, Value, json};

use super::{documents, is_cluster_scoped};

/// Renders a kustomization.
///
/// # Panics
///
/// Panics if a file can't be read, or uses an unsupported feature.
pub fn build(folder: &Path) -> Vec<Value> {
    apply(folder, Vec::new())
}

/// Renders a kustomization with an additional component.
///
/// # Panics
///
/// Panics if a file can't be read, or uses an unsupported feature.
pub fn build_with(folder: &Path, component: &Path) -> Vec<Value> {
    apply(component, build(folder))
}

fn apply(folder: &Path, mut objects: Vec<Value>) -> Vec<Value> {
    let kustomization = only(&folder.join("kustomization.yaml"));
    let (mut namespace, mut patches, mut copies) = (None, Vec::new(), Vec::new());
    for (member, value) in members(&kustomization) {
        match member.as_str() {
            "apiVersion" | "kind" => {}
            "resources" => {
                for entry in texts(value) {
                    objects.extend(resources(&folder.join(entry)));
                }
            }
            "transformers" => namespace = texts(value).first().map(|file| folder.join(file)),
            "patches" => {
                let entries = value.as_array().map_or(&[][..], Vec::as_slice);
                patches = entries
                    .iter()
                    .map(|entry| (entry["target"].clone(), file(folder, entry)))
                    .collect();
            }
            "replacements" => {
                let entries = value.as_array().map_or(&[][..], Vec::as_slice);
                copies = entries.iter().map(|entry| file(folder, entry)).collect();
            }
            other => panic!("{}: {other} is not supported", folder.display()),
        }
    }
    if let Some(file) = namespace {
        let transformer = only(&file);
        for object in &mut objects {
            put_into_namespace(object, &transformer);
        }
    }
    for (target, patch) in &patches {
        if let Value::Array(operations) = patch {
            let object = find(&mut objects, &target["kind"], &target["name"]);
            for operation in operations {
                add(object, operation);
            }
        } else {
            let object = find(&mut objects, &patch["kind"], &patch["metadata"]["name"]);
            patch_template(object, patch);
        }
    }
    for copy in &copies {
        let source = &copy["source"];
        let found = find(&mut objects, &source["kind"], &source["name"]);
        let value = found.pointer(&pointer(&source["fieldPath"])).cloned();
        for target in copy["targets"].as_array().into_iter().flatten() {
            let select = &target["select"];
            let object = find(&mut objects, &select["kind"], &select["name"]);
            let path = pointer(&target["fieldPaths"][0]);
            if let Some(delimiter) = target["options"]["delimiter"].as_str() {
                replace_part(
                    object,
                    &path,
                    delimiter,
                    &target["options"]["index"],
                    value.as_ref(),
                );
            } else {
                add(object, &json!({"op": "add", "path": path, "value": value}));
            }
        }
    }
    // kustomize puts namespaces first.
    objects.sort_by_key(|object| object["kind"] != "Namespace");
    objects
}

/// Objects of a file, or of a folder with a kustomization.
fn resources(path: &Path) -> Vec<Value> {
    if path.is_dir() {
        build(path)
    } else {
        documents(&read(path), &path.display().to_string())
    }
}

/// Sets the namespace like a `NamespaceTransformer` with `unsetOnly` and `allServiceAccounts`.
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

/// Reads the file named by an entry of a kustomization.
fn file(folder: &Path, entry: &Value) -> Value {
    only(&folder.join(entry["path"].as_str().unwrap_or_default()))
}

fn find<'a>(objects: &'a mut [Value], kind: &Value, name: &Value) -> &'a mut Value {
    let found = objects
        .iter_mut()
        .find(|object| object["kind"] == *kind && object["metadata"]["name"] == *name);
    found.unwrap_or_else(|| panic!("there is no {kind} {name}"))
}

/// Converts a kustomize path to a JSON pointer.
fn pointer(path: &Value) -> String {
    format!("/{}", path.as_str().unwrap_or_default().replace('.', "/"))
}

/// Applies an operation of a JSON patch; the shipped ones only add.
fn add(object: &mut Value, operation: &Value) {
    assert_eq!(operation["op"], "add");
    let (parent, last) = operation["path"]
        .as_str()
        .and_then(|path| path.rsplit_once('/'))
        .unwrap_or_else(|| panic!("no path in {operation}"));
    let value = operation["value"].clone();
    match object.pointer_mut(parent) {
        Some(Value::Array(list)) if last == "-" => list.push(value),
        Some(Value::Object(members)) => {
            members.insert(last.to_owned(), value);
        }
        _ => panic!("nothing to add to at {operation}"),
    }
}

/// Replaces one part of a text, counted from 0.
fn replace_part(
    object: &mut Value,
    path: &str,
    delimiter: &str,
    index: &Value,
    value: Option<&Value>,
) {
    let text = object
        .pointer_mut(path)
        .unwrap_or_else(|| panic!("there is no {path}"));
    let parts = text.as_str().unwrap_or_default().split(delimiter);
    let mut parts: Vec<&str> = parts.collect();
    let index = index.as_u64().and_then(|index| index.try_into().ok());
    let part = parts.get_mut(index.unwrap_or(usize::MAX));
    let new = value.and_then(Value::as_str).unwrap_or_default();
    *part.unwrap_or_else(|| panic!("{path} has too few parts")) = new;
    *text = parts.join(delimiter).into();
}

/// Patches the pod template, the only target of the shipped patches.
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

/// The only document of a file.
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
