//! The paths of the documents: each resource's operations and their parameters.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::schemas;
use crate::kinds::{Kind, Subresource, Verb};

/// The content types of patches.
const PATCHES: [&str; 4] = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// The content types of patches of custom resources.
const CUSTOM_PATCHES: [&str; 3] = [PATCHES[0], PATCHES[1], PATCHES[2]];

/// The media types of objects.
const OBJECTS: [&str; 3] = [
    "application/json",
    "application/vnd.kubernetes.protobuf",
    "application/yaml",
];

/// The media types of custom resources.
const CUSTOM_OBJECTS: [&str; 2] = [OBJECTS[0], OBJECTS[2]];

/// The type of all patches.
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

/// Builds the operations of one resource.
struct Operations<'a> {
    schemas: &'a Map<String, Value>,
    kind: &'a Kind,
    /// Group, version and kind of request and response bodies.
    shown: (&'a str, &'a str, &'a str),
}

/// Returns the paths of all resources of a group version.
pub(super) fn of(rows: &[Arc<Kind>], schemas: &Map<String, Value>) -> Map<String, Value> {
    let mut paths = Map::new();
    for kind in rows {
        let namespace = if kind.namespaced { "{namespace}" } else { "" };
        let own = Operations {
            schemas,
            kind,
            shown: (&kind.group, &kind.version, &kind.kind),
        };
        let verbs = |wanted: &[Verb]| -> Vec<Verb> {
            let verbs = kind.verbs.iter().copied();
            verbs.filter(|verb| wanted.contains(verb)).collect()
        };
        let collection = verbs(&[Verb::List, Verb::Create, Verb::DeleteCollection]);
        if kind.namespaced && kind.allows(Verb::List) {
            own.add(&mut paths, kind.collection_path(""), &[Verb::List], None);
        }
        own.add(
            &mut paths,
            kind.collection_path(namespace),
            &collection,
            None,
        );
        let item = kind.object_path(namespace, "{name}");
        let object = verbs(&[Verb::Get, Verb::Update, Verb::Patch, Verb::Delete]);
        own.add(&mut paths, item.clone(), &object, None);
        for part in &kind.subresources {
            let operations = Operations {
                shown: part.responds(kind),
                ..own
            };
            let path = format!("{item}/{}", part.name());
            operations.add(&mut paths, path, part.verbs(), Some(*part));
        }
    }
    paths
}

impl Operations<'_> {
    fn add(
        &self,
        paths: &mut Map<String, Value>,
        path: String,
        verbs: &[Verb],
        part: Option<Subresource>,
    ) {
        let mut operations = Map::new();
        for verb in verbs {
            let operation = self.operation(*verb, &path, part);
            operations.insert(method(*verb).to_owned(), operation);
        }
        if operations.is_empty() {
            return;
        }
        let of_path = ["namespace", "name"]
            .into_iter()
            .filter(|name| path.contains(&format!("{{{name}}}")))
            .map(|name| parameter(name, "path", "string"));
        operations.insert("parameters".to_owned(), of_path.collect());
        paths.insert(path, operations.into());
    }

    fn operation(&self, verb: Verb, path: &str, part: Option<Subresource>) -> Value {
        let (group, version, kind) = self.shown;
        let list = self.kind.list_kind();
        let (objects, patches): (&[&str], &[&str]) = match &self.kind.custom {
            Some(_) => (&CUSTOM_OBJECTS, &CUSTOM_PATCHES),
            None => (&OBJECTS, &PATCHES),
        };
        let answered = match verb {
            Verb::List => self.reference(&list),
            Verb::Delete | Verb::DeleteCollection => self.reference_to("", "v1", "Status"),
            _ => self.reference(kind),
        };
        let mut operation = json!({
            "operationId": self.operation_id(verb, path, part),
            "tags": [tag(self.kind)],
            "parameters": parameters(verb),
            "responses": {
                "200": {"description": "OK", "content": content(objects, &answered)},
                "401": {"description": "Unauthorized"},
            },
            "x-kubernetes-action": action(verb),
            "x-kubernetes-group-version-kind": {
                "group": group, "version": version, "kind": kind,
            },
        });
        let body = match verb {
            Verb::Create | Verb::Update => content(objects, &self.reference(kind)),
            Verb::Patch => content(patches, &self.known(PATCH)),
            Verb::Delete | Verb::DeleteCollection => {
                let (group, version) = (&self.kind.group, &self.kind.version);
                content(objects, &self.reference_to(group, version, "DeleteOptions"))
            }
            _ => return operation,
        };
        let required = matches!(verb, Verb::Create | Verb::Update | Verb::Patch);
        operation["requestBody"] = if required {
            json!({"content": body, "required": true})
        } else {
            json!({"content": body})
        };
        operation
    }

    /// Returns an operation's id, such as `readAppsV1NamespacedStatefulSetStatus`.
    fn operation_id(&self, verb: Verb, path: &str, part: Option<Subresource>) -> String {
        let word = match verb {
            Verb::Get => "read",
            Verb::Update => "replace",
            Verb::DeleteCollection => "deleteCollection",
            other => other.name(),
        };
        let version = capital(&self.kind.version);
        let group = capital(&group_word(self.kind));
        let kind = &self.kind.kind;
        let part = part.map(|part| capital(part.name())).unwrap_or_default();
        let is_namespaced = path.contains("{namespace}");
        let (before, after) = match (self.kind.namespaced, is_namespaced) {
            (true, true) => ("Namespaced", ""),
            (true, false) => ("", "ForAllNamespaces"),
            (false, _) => ("", ""),
        };
        format!("{word}{group}{version}{before}{kind}{part}{after}")
    }

    fn reference(&self, kind: &str) -> Value {
        self.reference_to(self.shown.0, self.shown.1, kind)
    }

    /// Returns a kind's schema: a reference, or any object if the kind has no schema.
    fn reference_to(&self, group: &str, version: &str, kind: &str) -> Value {
        match schemas::name_of(self.schemas, group, version, kind) {
            Some(name) => self.known(name),
            None => json!({"type": "object"}),
        }
    }

    fn known(&self, name: &str) -> Value {
        if self.schemas.contains_key(name) {
            json!({"$ref": format!("#/components/schemas/{name}")})
        } else {
            json!({"type": "object"})
        }
    }
}

fn content(media_types: &[&str], schema: &Value) -> Value {
    let contents = media_types.iter().map(|media_type| {
        let content = json!({"schema": schema});
        ((*media_type).to_owned(), content)
    });
    contents.collect::<Map<_, _>>().into()
}

fn method(verb: Verb) -> &'static str {
    match verb {
        Verb::Get | Verb::List | Verb::Watch => "get",
        Verb::Create => "post",
        Verb::Update => "put",
        Verb::Patch => "patch",
        Verb::Delete | Verb::DeleteCollection => "delete",
    }
}

fn action(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "post",
        Verb::Update => "put",
        other => other.name(),
    }
}

/// Returns the query parameters of an operation.
fn parameters(verb: Verb) -> Value {
    let of_writes = [
        ("dryRun", "string"),
        ("fieldManager", "string"),
        ("fieldValidation", "string"),
    ];
    let of_lists = [
        ("allowWatchBookmarks", "boolean"),
        ("continue", "string"),
        ("fieldSelector", "string"),
        ("labelSelector", "string"),
        ("limit", "integer"),
        ("resourceVersion", "string"),
        ("resourceVersionMatch", "string"),
        ("sendInitialEvents", "boolean"),
        ("timeoutSeconds", "integer"),
        ("watch", "boolean"),
    ];
    let of_deletions = [
        ("dryRun", "string"),
        ("gracePeriodSeconds", "integer"),
        ("orphanDependents", "boolean"),
        ("propagationPolicy", "string"),
    ];
    let mut found: Vec<(&str, &str)> = match verb {
        Verb::Get => Vec::new(),
        Verb::List | Verb::Watch => of_lists.to_vec(),
        Verb::Create | Verb::Update => of_writes.to_vec(),
        Verb::Patch => [&of_writes[..], &[("force", "boolean")]].concat(),
        Verb::Delete => of_deletions.to_vec(),
        Verb::DeleteCollection => {
            let mut both = [&of_lists[..], &of_deletions[..]].concat();
            both.retain(|(name, _)| !matches!(*name, "allowWatchBookmarks" | "watch"));
            both
        }
    };
    found.push(("pretty", "string"));
    let found = found.into_iter();
    found
        .map(|(name, of)| parameter(name, "query", of))
        .collect()
}

fn parameter(name: &str, place: &str, of: &str) -> Value {
    let mut parameter = json!({
        "name": name,
        "in": place,
        "schema": {"type": of, "uniqueItems": true},
    });
    if place == "path" {
        parameter["required"] = json!(true);
    }
    parameter
}

/// Returns a tag such as `apps_v1`.
fn tag(kind: &Kind) -> String {
    format!("{}_{}", group_word(kind), kind.version)
}

/// Returns the word for a group: the first label of a built-in one, all labels of a custom one.
fn group_word(kind: &Kind) -> String {
    let mut labels = kind.group.split('.');
    let first = labels.next().unwrap_or_default();
    match &kind.custom {
        None if first.is_empty() => "core".to_owned(),
        None => first.to_owned(),
        Some(_) => labels.fold(first.to_owned(), |word, label| word + &capital(label)),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
