//! The parameters of operations.
//!
//! Upstream: `addObjectParams` of `k8s.io/apiserver`

use serde_json::{Value, json};

use crate::kinds::Verb;

/// The query parameters, each with its type and its description.
const TABLE: &str = include_str!("parameters.txt");

/// The fields of `CreateOptions` and `UpdateOptions`.
const OF_WRITES: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];

/// The fields of `PatchOptions`.
const OF_PATCHES: [&str; 4] = ["dryRun", "patch.fieldManager", "fieldValidation", "force"];

/// The fields of `DeleteOptions`.
const OF_DELETIONS: [&str; 5] = [
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];

/// The fields of `ListOptions`; those of watches are the first two.
const OF_LISTS: [&str; 11] = [
    "allowWatchBookmarks",
    "watch",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
];

/// Returns the query parameters of an operation, by name.
pub(super) fn of_query(verb: Verb, is_custom: bool) -> Vec<Value> {
    let mut names = match verb {
        Verb::Get if is_custom => vec!["resourceVersion"],
        Verb::Get => Vec::new(),
        Verb::List | Verb::Watch => OF_LISTS.to_vec(),
        Verb::Create | Verb::Update => OF_WRITES.to_vec(),
        Verb::Patch => OF_PATCHES.to_vec(),
        Verb::Delete => OF_DELETIONS.to_vec(),
        Verb::DeleteCollection if is_custom => OF_LISTS.to_vec(),
        Verb::DeleteCollection => {
            let (_, of_lists) = OF_LISTS.split_at(2);
            [of_lists, &OF_DELETIONS].concat()
        }
    };
    names.push("pretty");
    let mut found: Vec<Value> = names.into_iter().map(in_query).collect();
    sort(&mut found);
    found
}

/// Returns the parameters in a path, by name. `kind` is that of the named object.
pub(super) fn of_path(path: &str, kind: &str) -> Vec<Value> {
    let name = format!("name of the {kind}");
    let all = [
        ("name", name.as_str()),
        (
            "namespace",
            "object name and auth scope, such as for teams and projects",
        ),
    ];
    let found = all
        .into_iter()
        .filter(|(name, _)| path.contains(&format!("{{{name}}}")));
    let parameters = found.map(|(name, description)| {
        json!({
            "name": name,
            "in": "path",
            "description": description,
            "required": true,
            "schema": {"type": "string", "uniqueItems": true},
        })
    });
    parameters.collect()
}

/// Takes the parameters that all operations have in common.
///
/// Upstream: `findCommonParameters` of `k8s.io/kube-openapi`
pub(super) fn take_common(of_operations: &mut [Vec<Value>]) -> Vec<Value> {
    let Some((first, others)) = of_operations.split_first() else {
        return Vec::new();
    };
    let is_common = |one: &&Value| others.iter().all(|other| other.contains(one));
    let common: Vec<Value> = first.iter().filter(is_common).cloned().collect();
    for parameters in of_operations {
        parameters.retain(|parameter| !common.contains(parameter));
    }
    common
}

/// Sorts parameters by name.
pub(super) fn sort(parameters: &mut [Value]) {
    parameters.sort_by(|one, other| one["name"].as_str().cmp(&other["name"].as_str()));
}

/// Returns the query parameter in this row of the table.
fn in_query(row: &str) -> Value {
    let mut rows = TABLE.lines();
    let found = rows.find_map(|line| line.strip_prefix(row)?.strip_prefix(' '));
    let (of, description) = found
        .and_then(|rest| rest.split_once(' '))
        .unwrap_or_default();
    let name = row.rsplit('.').next().unwrap_or(row);
    json!({
        "name": name,
        "in": "query",
        "description": description.replace("\\n", "\n"),
        "schema": {"type": of, "uniqueItems": true},
    })
}
