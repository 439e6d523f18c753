//! Defaults of kinds with a pod template.

use kube_apimachinery::defaults;
use serde_json::{Map, Value, json};

use super::{default_number, default_text};
use crate::members::object_mut;

/// The annotation that counts a daemon set's templates.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Upstream: `SetDefaults_Deployment`.
pub(super) fn deployment(value: &mut Value) {
    let spec = object_mut(value, "spec");
    default_number(spec, "replicas", 1);
    default_number(spec, "revisionHistoryLimit", 10);
    default_number(spec, "progressDeadlineSeconds", 600);
    let strategy = child(spec, "strategy");
    default_text(strategy, "type", "RollingUpdate");
    if strategy.get("type") == Some(&json!("RollingUpdate")) {
        let rolling = child(strategy, "rollingUpdate");
        for member in ["maxUnavailable", "maxSurge"] {
            default_value(rolling, member, json!("25%"));
        }
    }
    template(spec);
}

/// Upstream: `SetDefaults_ReplicaSet`.
pub(super) fn replica_set(value: &mut Value) {
    let spec = object_mut(value, "spec");
    default_number(spec, "replicas", 1);
    template(spec);
}

/// Upstream: `SetDefaults_DaemonSet`.
pub(super) fn daemon_set(value: &mut Value) {
    let spec = object_mut(value, "spec");
    default_number(spec, "revisionHistoryLimit", 10);
    let strategy = child(spec, "updateStrategy");
    default_text(strategy, "type", "RollingUpdate");
    if strategy.get("type") == Some(&json!("RollingUpdate")) {
        let rolling = child(strategy, "rollingUpdate");
        default_value(rolling, "maxUnavailable", json!(1));
        default_value(rolling, "maxSurge", json!(0));
    }
    template(spec);
}

/// Updates a daemon set's template counter; a new set starts at 1.
pub fn count_templates(new: &mut Value, old: Option<&Value>) {
    let count = |value: &Value| -> i64 {
        let annotations = value.pointer("/metadata/annotations");
        let text = annotations.and_then(|a| a.get(TEMPLATE_GENERATION)?.as_str());
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    let count = match old {
        None => count(new).max(1),
        Some(old) => {
            let changed = new.pointer("/spec/template") != old.pointer("/spec/template");
            count(old) + i64::from(changed)
        }
    };
    let annotations = child(object_mut(new, "metadata"), "annotations");
    annotations.insert(TEMPLATE_GENERATION.to_owned(), json!(count.to_string()));
}

/// Upstream: `SetDefaults_ReplicationController`.
pub(super) fn replication_controller(value: &mut Value) {
    let labels = value.pointer("/spec/template/metadata/labels").cloned();
    if let Some(labels) = labels.filter(|l| l.as_object().is_some_and(|l| !l.is_empty())) {
        let is_empty =
            |value: Option<&Value>| value.and_then(Value::as_object).is_none_or(Map::is_empty);
        if is_empty(value.pointer("/spec/selector")) {
            object_mut(value, "spec").insert("selector".to_owned(), labels.clone());
        }
        if is_empty(value.pointer("/metadata/labels")) {
            object_mut(value, "metadata").insert("labels".to_owned(), labels);
        }
    }
    let spec = object_mut(value, "spec");
    default_number(spec, "replicas", 1);
    template(spec);
}

/// Sets the defaults of a `PodTemplate` object.
pub(super) fn pod_template(value: &mut Value) {
    if let Some(map) = value.as_object_mut() {
        template(map);
    }
}

fn template(holder: &mut Map<String, Value>) {
    if let Some(template) = holder.get_mut("template") {
        defaults::set_pod_template_defaults(template);
    }
}

fn child<'a>(map: &'a mut Map<String, Value>, member: &str) -> &'a mut Map<String, Value> {
    let slot = map.entry(member).or_insert_with(|| json!({}));
    if !slot.is_object() {
        *slot = json!({});
    }
    slot.as_object_mut()
        .expect("the member was made an object just above")
}

fn default_value(map: &mut Map<String, Value>, member: &str, default: Value) {
    if map.get(member).is_none_or(Value::is_null) {
        map.insert(member.to_owned(), default);
    }
}
