//! The cells of kinds with a pod template.

use serde_json::{Value, json};

use super::cells::{joined, labels, list, number, or_none, text};

/// Returns the cells of wide output: names, images and selector.
fn wide(object: &Value) -> [Value; 3] {
    let [names, images] = containers(object);
    [
        names,
        images,
        json!(selector(object.pointer("/spec/selector"))),
    ]
}

fn containers(object: &Value) -> [Value; 2] {
    let pointer = if object.get("spec").is_some() {
        "/spec/template/spec/containers"
    } else {
        "/template/spec/containers"
    };
    ["/name", "/image"].map(|member| json!(joined(list(object, pointer).map(|c| text(c, member)))))
}

pub(super) fn deployment(deployment: &Value, created: &str) -> Vec<Value> {
    let ready = number(deployment, "/status/readyReplicas");
    let desired = number(deployment, "/spec/replicas");
    let mut cells = vec![
        json!(text(deployment, "/metadata/name")),
        json!(format!("{ready}/{desired}")),
        json!(number(deployment, "/status/updatedReplicas")),
        json!(number(deployment, "/status/availableReplicas")),
        json!(created),
    ];
    cells.extend(wide(deployment));
    cells
}

/// Returns the cells of a replica set or a replication controller.
pub(super) fn replica_set(set: &Value, created: &str) -> Vec<Value> {
    let mut cells = vec![
        json!(text(set, "/metadata/name")),
        json!(number(set, "/spec/replicas")),
        json!(number(set, "/status/replicas")),
        json!(number(set, "/status/readyReplicas")),
        json!(created),
    ];
    cells.extend(wide(set));
    cells
}

pub(super) fn daemon_set(set: &Value, created: &str) -> Vec<Value> {
    let mut cells = vec![
        json!(text(set, "/metadata/name")),
        json!(number(set, "/status/desiredNumberScheduled")),
        json!(number(set, "/status/currentNumberScheduled")),
        json!(number(set, "/status/numberReady")),
        json!(number(set, "/status/updatedNumberScheduled")),
        json!(number(set, "/status/numberAvailable")),
        json!(or_none(&labels(set, "/spec/template/spec/nodeSelector"))),
        json!(created),
    ];
    cells.extend(wide(set));
    cells
}

pub(super) fn pod_template(template: &Value) -> Vec<Value> {
    let [names, images] = containers(template);
    let found = labels(template, "/template/metadata/labels");
    vec![
        json!(text(template, "/metadata/name")),
        names,
        images,
        json!(or_none(&found)),
    ]
}

/// Formats a selector, either with expressions or as a label map, as kubectl does.
fn selector(selector: Option<&Value>) -> String {
    let Some(selector) = selector else {
        return "<none>".to_owned();
    };
    let has_form = ["matchLabels", "matchExpressions"]
        .iter()
        .any(|member| selector.get(member).is_some());
    let text = if has_form {
        crate::selectors::selector_text(Some(selector))
    } else {
        labels(selector, "")
    };
    or_none(&text).to_owned()
}
