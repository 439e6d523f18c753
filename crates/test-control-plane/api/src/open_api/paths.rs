//! The paths of the documents: each resource's operations and their parameters.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{parameters, schemas};
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

/// The type of the responses to deletions.
const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

/// The type of the bodies of deletions.
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// Codes of success with their descriptions.
const OK: (&str, &str) = ("200", "OK");
const CREATED: (&str, &str) = ("201", "Created");
const ACCEPTED: (&str, &str) = ("202", "Accepted");

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
                shown: kind.response_type(*part),
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
        if verbs.is_empty() {
            return;
        }
        let is_custom = self.kind.custom.is_some();
        let of_query = verbs.iter();
        let mut of_query: Vec<Vec<Value>> = of_query
            .map(|verb| parameters::of_query(*verb, is_custom))
            .collect();
        let named = if is_custom {
            &self.kind.kind
        } else {
            self.shown.2
        };
        let mut common = parameters::of_path(&path, named);
        common.extend(parameters::take_common(&mut of_query));
        parameters::sort(&mut common);
        let mut operations = Map::new();
        for (verb, parameters) in verbs.iter().zip(of_query) {
            let mut operation = self.operation(*verb, &path, part);
            if !parameters.is_empty() {
                operation["parameters"] = parameters.into();
            }
            operations.insert(method(*verb).to_owned(), operation);
        }
        operations.insert("parameters".to_owned(), common.into());
        paths.insert(path, operations.into());
    }

    fn operation(&self, verb: Verb, path: &str, part: Option<Subresource>) -> Value {
        let kind = self.shown.2;
        let (group, version, named) = match &self.kind.custom {
            Some(_) => (&*self.kind.group, &*self.kind.version, &*self.kind.kind),
            None => self.shown,
        };
        let list = self.kind.list_kind();
        let (objects, patches): (&[&str], &[&str]) = match &self.kind.custom {
            Some(_) => (&CUSTOM_OBJECTS, &CUSTOM_PATCHES),
            None => (&OBJECTS, &PATCHES),
        };
        let answered = match verb {
            Verb::List => self.reference(&list),
            Verb::Delete | Verb::DeleteCollection => self.known(STATUS),
            _ => self.reference(kind),
        };
        let mut operation = json!({
            "operationId": self.operation_id(verb, path, part),
            "description": self.description(verb, part),
            "tags": [tag(self.kind)],
            "responses": self.responses(verb, &content(objects, &answered)),
            "x-kubernetes-action": action(verb),
            "x-kubernetes-group-version-kind": {
                "group": group, "version": version, "kind": named,
            },
        });
        let body = match verb {
            Verb::Create | Verb::Update => content(objects, &self.reference(kind)),
            Verb::Patch => content(patches, &self.known(PATCH)),
            Verb::DeleteCollection if self.kind.custom.is_some() => return operation,
            Verb::Delete | Verb::DeleteCollection => content(objects, &self.known(DELETE_OPTIONS)),
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

    /// Returns the text about an operation.
    ///
    /// Upstream: `descriptionFor` of `k8s.io/apiextensions-apiserver`
    fn description(&self, verb: Verb, part: Option<Subresource>) -> String {
        let kind = &self.kind.kind;
        let of = part.map(|part| format!("{} of ", part.name()));
        let of = of.unwrap_or_default();
        let article = article(kind);
        match verb {
            Verb::Get => format!("read {of}the specified {kind}"),
            Verb::Update => format!("replace {of}the specified {kind}"),
            Verb::Patch => format!("partially update {of}the specified {kind}"),
            Verb::Create => format!("create {of}{article}{kind}"),
            Verb::Delete => format!("delete {of}{article}{kind}"),
            Verb::DeleteCollection => format!("delete collection of {kind}"),
            Verb::List | Verb::Watch if self.kind.custom.is_some() => {
                format!("list objects of kind {kind}")
            }
            Verb::List | Verb::Watch => format!("list or watch objects of kind {kind}"),
        }
    }

    /// Returns the responses of an operation; those of success have the same content.
    fn responses(&self, verb: Verb, content: &Value) -> Value {
        let successes: &[(&str, &str)] = match verb {
            Verb::Create => &[OK, CREATED, ACCEPTED],
            Verb::Update => &[OK, CREATED],
            Verb::Patch if self.kind.custom.is_none() => &[OK, CREATED],
            Verb::Delete => &[OK, ACCEPTED],
            _ => &[OK],
        };
        let mut responses = Map::new();
        for (code, description) in successes {
            let response = json!({"description": description, "content": content});
            responses.insert((*code).to_owned(), response);
        }
        let unauthorized = json!({"description": "Unauthorized"});
        responses.insert("401".to_owned(), unauthorized);
        responses.into()
    }

    /// Returns an operation's id, such as `readAppsV1NamespacedStatefulSetStatus`.
    fn operation_id(&self, verb: Verb, path: &str, part: Option<Subresource>) -> String {
        let word = match verb {
            Verb::Get => "read",
            Verb::Update => "replace",
            Verb::DeleteCollection => "delete",
            other => other.name(),
        };
        let collection = match verb {
            Verb::DeleteCollection => "Collection",
            _ => "",
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
        format!("{word}{group}{version}{collection}{before}{kind}{part}{after}")
    }

    /// Returns a kind's schema: a reference, or any object if the kind has no schema.
    fn reference(&self, kind: &str) -> Value {
        let (group, version, _) = self.shown;
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

/// Returns the article of a kind with a blank behind it; plurals have none.
///
/// Upstream: `GetArticleForNoun`
fn article(kind: &str) -> &'static str {
    let is_vowel = kind.starts_with(|c: char| "aeiou".contains(c.to_ascii_lowercase()));
    match kind {
        plural if plural.ends_with('s') && !plural.ends_with("ss") => "",
        _ if is_vowel => "an ",
        _ => "a ",
    }
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
