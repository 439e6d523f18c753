//! The fake API's objects, as text.

use std::collections::BTreeMap;

use kube_apimachinery::json::to_go_string;
use serde_json::{Value, json, value::RawValue};

use super::{
    Action, Verb,
    fault::{already_exists, not_found},
    merge,
};
use crate::{error::Error, rest::PatchType};

/// Resource, namespace, name.
type Key = (String, String, String);

/// Objects by resource, namespace and name.
#[derive(Default)]
pub(super) struct Tracker {
    objects: BTreeMap<Key, String>,
}

impl Tracker {
    pub(super) fn load(&mut self, resource: &str, text: String) {
        let object: Value = serde_json::from_str(&text).expect("a loaded object is JSON");
        let metadata = &object["metadata"];
        let field = |name: &str| metadata[name].as_str().unwrap_or_default().to_owned();
        self.objects.insert(
            (resource.to_owned(), field("namespace"), field("name")),
            text,
        );
    }

    pub(super) fn unload(&mut self, resource: &str, namespace: &str, name: &str) {
        self.objects.remove(&key(resource, namespace, name));
    }

    pub(super) fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<String> {
        self.objects.get(&key(resource, namespace, name)).cloned()
    }

    pub(super) fn list(&self, resource: &str, namespace: &str) -> Vec<String> {
        let matches = |key: &Key| key.0 == resource && (namespace.is_empty() || key.1 == namespace);
        let found = self.objects.iter().filter(|(key, _)| matches(key));
        found.map(|(_, text)| text.clone()).collect()
    }

    /// Executes a call and returns the response's body.
    pub(super) fn apply(&mut self, action: &Action) -> Result<String, Error> {
        let key = key(&action.resource, &action.namespace, &action.name);
        let missing = || not_found(&action.group_resource(), &action.name);
        match action.verb {
            Verb::Get => self.objects.get(&key).cloned().ok_or_else(missing),
            Verb::List => {
                let items = self.list(&action.resource, &action.namespace).join(",");
                Ok(format!(
                    r#"{{"kind":"List","apiVersion":"v1","metadata":{{"resourceVersion":"1"}},"items":[{items}]}}"#
                ))
            }
            Verb::Watch => Err(Error::api(
                405,
                "MethodNotAllowed",
                "the fake API cannot be watched",
            )),
            Verb::Create if self.objects.contains_key(&key) => {
                Err(already_exists(&action.group_resource(), &action.name))
            }
            Verb::Create => {
                let text = with_namespace(&action.body, &action.namespace)?;
                self.objects.insert(key, text.clone());
                Ok(text)
            }
            Verb::Update => {
                let stored = self.objects.get_mut(&key).ok_or_else(missing)?;
                *stored = with_namespace(&action.body, &action.namespace)?;
                Ok(stored.clone())
            }
            Verb::Patch => {
                let stored = self.objects.get_mut(&key).ok_or_else(missing)?;
                *stored = patched(stored, action)?;
                Ok(stored.clone())
            }
            Verb::Delete => {
                self.objects.remove(&key).ok_or_else(missing)?;
                Ok(json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}).to_string())
            }
        }
    }
}

fn key(resource: &str, namespace: &str, name: &str) -> Key {
    (resource.to_owned(), namespace.to_owned(), name.to_owned())
}

/// An object's fields, each with its original bytes.
type Members = BTreeMap<String, Box<RawValue>>;

fn bad_request(err: &serde_json::Error) -> Error {
    Error::api(
        400,
        "BadRequest",
        format!("the body is not an object: {err}"),
    )
}

/// Adds the URL's namespace if the object has none.
fn with_namespace(text: &str, namespace: &str) -> Result<String, Error> {
    let mut members: Members = serde_json::from_str(text).map_err(|err| bad_request(&err))?;
    let metadata = members.get("metadata").map_or("{}", |raw| raw.get());
    let mut metadata: Value = serde_json::from_str(metadata).map_err(|err| bad_request(&err))?;
    if namespace.is_empty()
        || metadata["namespace"]
            .as_str()
            .is_some_and(|it| !it.is_empty())
    {
        return Ok(text.to_owned());
    }
    metadata["namespace"] = namespace.into();
    members.insert("metadata".to_owned(), raw(&metadata)?);
    serde_json::to_string(&members).map_err(|err| bad_request(&err))
}

/// Applies a patch. Like the API, it encodes the object again: sorted fields, no spaces.
fn patched(text: &str, action: &Action) -> Result<String, Error> {
    let old: Value = serde_json::from_str(text).map_err(|err| bad_request(&err))?;
    let patch: Value = serde_json::from_str(&action.body).map_err(|err| bad_request(&err))?;
    let new = match action.patch_type {
        Some(PatchType::Strategic) => merge::strategic(old, patch),
        Some(PatchType::Merge) => merge::plain(old, patch),
        None => {
            return Err(Error::api(
                415,
                "UnsupportedMediaType",
                "unknown kind of patch",
            ));
        }
    };
    Ok(to_go_string(&new))
}

fn raw(value: &Value) -> Result<Box<RawValue>, Error> {
    serde_json::value::to_raw_value(value).map_err(|err| bad_request(&err))
}
