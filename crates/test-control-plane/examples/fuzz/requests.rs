//! Requests: changed recordings, patches, reads with odd queries, and protobuf.

use std::fmt::Write as _;

use kube_test_control_plane_api::kinds::KINDS;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::Value;

use crate::corpus::Corpus;
use crate::{mutate, patches};

/// A request to send.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempt {
    pub(crate) method: String,
    /// The path with its query.
    pub(crate) target: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

/// An object created by the session.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) path: String,
    pub(crate) object: Value,
}

const METHODS: &[&str] = &[
    "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "X",
];

const CONTENT_TYPES: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/json; charset=utf-8",
    "text/plain",
    ";",
    "",
];

const ACCEPTS: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf,application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,*/*",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
    "*/*;q=0.1",
    "application/json;q=nan",
    ";;,,=",
    "",
];

const PARAMETERS: &[&str] = &[
    "labelSelector",
    "fieldSelector",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "dryRun",
    "fieldManager",
    "force",
    "fieldValidation",
    "timeoutSeconds",
    "timeout",
    "watch",
    "sendInitialEvents",
    "allowWatchBookmarks",
    "gracePeriodSeconds",
    "propagationPolicy",
    "orphanDependents",
    "pretty",
    "includeObject",
    "container",
    "tailLines",
    "command",
    "hash",
    "verbose",
];

const VALUES: &[&str] = &[
    "true",
    "false",
    "1",
    "0",
    "5",
    "All",
    "Strict",
    "Warn",
    "Ignore",
    "Exact",
    "NotOlderThan",
    "Background",
    "Foreground",
    "Orphan",
    "None",
    "Metadata",
    "Object",
    "me",
];

const SELECTORS: &[&str] = &[
    "app=web",
    "app!=web,b",
    "!app",
    "app in (web,x)",
    "app notin ()",
    "app in",
    "a>1,b<2",
    "metadata.name=web",
    "metadata.namespace!=default",
    "spec.nodeName=",
    "status.phase=Pending,spec.restartPolicy=Always",
    "involvedObject.name=a\\,b",
    "a\\=b=c",
];

const YAML: &[&str] = &[
    "a: &a [*a]",
    "a: &a [x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f]\nh: &h [*g,*g,*g,*g]\ni: &i [*h,*h,*h,*h]\nj: [*i,*i,*i,*i]",
    "<<: {a: 1}",
    "? [a]\n: b",
    "a: 1\na: 2",
    "--- a\n--- b",
    "!!binary aGk=",
    "\t- a",
    "1: 2\n3: 4",
    "kind: ConfigMap\napiVersion: v1\nmetadata: {name: y}\ndata: {a: 1, b: yes, c: 0x10, d: 1_000}",
    "key: |\n  text\n more",
    "%YAML 9.9\n---\n{}",
];

/// Returns the next request.
pub(crate) fn attempt(random: &mut StdRng, corpus: &Corpus, known: &[Known]) -> Attempt {
    let mut attempt = match random.random_range(0..20) {
        0..9 => recorded(random, corpus),
        9..14 => patch(random, known).unwrap_or_else(|| recorded(random, corpus)),
        14..17 => read(random, known),
        17 => yaml(random, corpus),
        _ => protobuf(random, corpus),
    };
    if random.random_ratio(1, 6) {
        add_query(random, &mut attempt);
    }
    if random.random_ratio(1, 8) {
        let accept = ACCEPTS.choose(random).copied().unwrap_or_default();
        attempt.headers.push(("accept", accept.to_owned()));
    }
    if random.random_ratio(1, 40) {
        attempt.method = METHODS.choose(random).copied().unwrap_or("GET").to_owned();
    }
    if random.random_ratio(1, 40) {
        let content_type = CONTENT_TYPES.choose(random).copied().unwrap_or_default();
        attempt.headers.retain(|(name, _)| *name != "content-type");
        attempt
            .headers
            .push(("content-type", content_type.to_owned()));
    }
    if random.random_ratio(1, 30) {
        mutate::bytes(random, &mut attempt.body);
    }
    if random.random_ratio(1, 25) {
        change_path(random, &mut attempt);
    }
    attempt
}

fn recorded(random: &mut StdRng, corpus: &Corpus) -> Attempt {
    let Some(step) = corpus.steps.choose(random) else {
        return read(random, &[]);
    };
    let mut body = step.body.clone();
    if random.random_ratio(3, 5) {
        for _ in 0..random.random_range(1..4) {
            let donor = corpus.steps.choose(random).map(|step| step.body.clone());
            mutate::value(random, &mut body, &donor.unwrap_or_default());
        }
    }
    let body = if body.is_null() {
        Vec::new()
    } else {
        mutate::to_bytes(random, &body)
    };
    let mut attempt = Attempt {
        method: step.method.clone(),
        target: step.path.clone(),
        headers: Vec::new(),
        body,
    };
    if !step.content_type.is_empty() {
        attempt
            .headers
            .push(("content-type", step.content_type.clone()));
    }
    attempt
}

fn patch(random: &mut StdRng, known: &[Known]) -> Option<Attempt> {
    let known = known.choose(random)?;
    let (content_type, body) = patches::patch(random, &known.object);
    let mut target = known.path.clone();
    let subresources = ["", "", "", "/status", "/scale", "/finalize", "/other"];
    target.push_str(subresources.choose(random).copied().unwrap_or_default());
    if content_type == "application/apply-patch+yaml" {
        target.push_str("?fieldManager=m");
        target.push_str(if random.random() { "&force=true" } else { "" });
    }
    let put = random.random_ratio(1, 6);
    let mut attempt = Attempt {
        method: if put { "PUT" } else { "PATCH" }.to_owned(),
        target,
        headers: Vec::new(),
        body: mutate::to_bytes(random, &body),
    };
    if put {
        let mut whole = known.object.clone();
        let donor = mutate::odd_value(random);
        mutate::value(random, &mut whole, &donor);
        attempt.body = mutate::to_bytes(random, &whole);
    } else {
        attempt
            .headers
            .push(("content-type", content_type.to_owned()));
    }
    Some(attempt)
}

fn read(random: &mut StdRng, known: &[Known]) -> Attempt {
    let mut target = match (random.random_range(0..4), known.choose(random)) {
        (0, Some(known)) => known.path.clone(),
        (1, _) => {
            let paths = [
                "/",
                "/api",
                "/apis",
                "/api/v1",
                "/apis/apps",
                "/apis/apps/v1",
                "/openapi/v3",
                "/openapi/v3/apis/apps/v1",
                "/openapi/v2",
                "/version",
                "/healthz",
                "/livez/ping",
                "/readyz",
                "/metrics",
                "/api/v1/watch/pods",
            ];
            paths.choose(random).copied().unwrap_or_default().to_owned()
        }
        _ => KINDS.choose(random).map_or_else(String::new, |kind| {
            kind.collection_path(if random.random() { "default" } else { "" })
        }),
    };
    if random.random_ratio(1, 6) {
        target.push('/');
        target.push_str(&escaped(random));
    }
    let delete = random.random_ratio(1, 8);
    let mut attempt = Attempt {
        method: if delete { "DELETE" } else { "GET" }.to_owned(),
        target,
        ..Attempt::default()
    };
    add_query(random, &mut attempt);
    attempt
}

fn yaml(random: &mut StdRng, corpus: &Corpus) -> Attempt {
    let mut attempt = recorded(random, corpus);
    if random.random() {
        let text = YAML.choose(random).copied().unwrap_or_default();
        attempt.body = text.as_bytes().to_vec();
    } else if random.random_ratio(1, 10) {
        let opening = ["- ", "[", "{a: ", "? "];
        let opening = opening.choose(random).copied().unwrap_or_default();
        attempt.body = opening.repeat(random.random_range(10..20_000)).into_bytes();
    }
    let content_type = if attempt.method == "PATCH" {
        "application/apply-patch+yaml"
    } else {
        "application/yaml"
    };
    attempt.headers = vec![("content-type", content_type.to_owned())];
    attempt
}

fn protobuf(random: &mut StdRng, corpus: &Corpus) -> Attempt {
    let mut attempt = Attempt {
        method: "POST".to_owned(),
        ..Attempt::default()
    };
    let message = corpus.messages.choose(random);
    let content_type = "application/vnd.kubernetes.protobuf".to_owned();
    attempt.headers.push(("content-type", content_type));
    if let Some((api_version, kind, bytes)) = message {
        attempt.body.clone_from(bytes);
        let row = KINDS
            .iter()
            .find(|row| row.kind == *kind && row.api_version() == *api_version);
        let pod = "/api/v1/namespaces/default/pods/web-0";
        attempt.target = match (row, kind.as_str()) {
            (Some(row), _) => row.collection_path("default"),
            (None, "Eviction") => format!("{pod}/eviction"),
            (None, "TokenRequest") => "/api/v1/namespaces/default/serviceaccounts/sa/token".into(),
            (None, "Scale") => {
                "PUT".clone_into(&mut attempt.method);
                "/apis/apps/v1/namespaces/default/statefulsets/web/scale".to_owned()
            }
            (None, _) => {
                "DELETE".clone_into(&mut attempt.method);
                pod.to_owned()
            }
        };
    }
    if random.random_ratio(3, 4) {
        mutate::bytes(random, &mut attempt.body);
    }
    attempt
}

fn add_query(random: &mut StdRng, attempt: &mut Attempt) {
    for _ in 0..random.random_range(0..4) {
        let separator = if attempt.target.contains('?') {
            '&'
        } else {
            '?'
        };
        let name = match random.random_range(0..12) {
            0 => escaped(random),
            _ => PARAMETERS
                .choose(random)
                .copied()
                .unwrap_or_default()
                .to_owned(),
        };
        let value = match random.random_range(0..4) {
            0 => escape(SELECTORS.choose(random).copied().unwrap_or_default()),
            1 => escaped(random),
            2 => random.random_range(0..150).to_string(),
            _ => VALUES
                .choose(random)
                .copied()
                .unwrap_or_default()
                .to_owned(),
        };
        let _ = write!(attempt.target, "{separator}{name}={value}");
    }
}

fn change_path(random: &mut StdRng, attempt: &mut Attempt) {
    let (path, query) = match attempt.target.split_once('?') {
        Some((path, query)) => (path.to_owned(), format!("?{query}")),
        None => (attempt.target.clone(), String::new()),
    };
    let mut segments: Vec<String> = path.split('/').map(str::to_owned).collect();
    let at = random.random_range(0..segments.len());
    match random.random_range(0..4) {
        0 => segments[at] = escaped(random),
        1 => segments.insert(at, escaped(random)),
        2 => drop(segments.remove(at)),
        _ => segments.truncate(at),
    }
    attempt.target = format!("/{}{query}", segments.join("/").trim_start_matches('/'));
}

fn escaped(random: &mut StdRng) -> String {
    match random.random_range(0..8) {
        0 => "%zz".to_owned(),
        1 => "%ff%fe".to_owned(),
        2 => "%".to_owned(),
        3 => "+".to_owned(),
        _ => escape(&mutate::text(random)),
    }
}

fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02x}");
        }
    }
    escaped
}
