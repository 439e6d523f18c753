//! The cells of each kind.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::age;
use super::{access, network, pods, workloads};
use crate::defaults;
use crate::kinds::Kind;
pub(super) use crate::members::{list_at as list, number_at as number, text_at as text};

/// Returns the cells of an object in the order of its kind's columns.
pub(super) fn cells(kind: &Kind, object: &Value, now: Timestamp) -> Vec<Value> {
    let created = age(text(object, "/metadata/creationTimestamp"), now);
    let name = json!(text(object, "/metadata/name"));
    match kind.storage {
        "pods" => pods::cells(object, &created, now),
        "statefulsets" => stateful_set(object, &created),
        "persistentvolumeclaims" => claim(object, &created),
        "persistentvolumes" => volume(object, &created),
        "controllerrevisions" => vec![
            name,
            json!(controller(object)),
            object.get("revision").cloned().unwrap_or(json!(0)),
            json!(created),
        ],
        "events" => event(object, now),
        "scales" => vec![
            name,
            json!(number(object, "/spec/replicas")),
            json!(number(object, "/status/replicas")),
            json!(created),
        ],
        "leases" => vec![
            name,
            json!(text(object, "/spec/holderIdentity")),
            json!(created),
        ],
        "namespaces" => vec![name, json!(text(object, "/status/phase")), json!(created)],
        "services" => network::service(object, &created),
        "endpoints" => network::endpoints(object, &created),
        "deployments" => workloads::deployment(object, &created),
        "replicasets" | "replicationcontrollers" => workloads::replica_set(object, &created),
        "daemonsets" => workloads::daemon_set(object, &created),
        "podtemplates" => workloads::pod_template(object),
        "rolebindings" | "clusterrolebindings" => access::role_binding(object, &created),
        "resourcequotas" => access::quota(object, &created),
        "serviceaccounts" => vec![name, json!(created)],
        "nodes" => node(object, &created),
        "configmaps" => vec![name, data_count(object), json!(created)],
        "secrets" => {
            vec![
                name,
                json!(text(object, "/type")),
                data_count(object),
                json!(created),
            ]
        }
        "storageclasses" => storage_class(object, &created),
        "poddisruptionbudgets" => vec![
            name,
            json!(number_or_percent(object, "/spec/minAvailable")),
            json!(number_or_percent(object, "/spec/maxUnavailable")),
            object
                .pointer("/status/disruptionsAllowed")
                .cloned()
                .unwrap_or(json!(0)),
            json!(created),
        ],
        // The reference prints the creation time, not an age, for kinds without a printer.
        _ => vec![name, json!(text(object, "/metadata/creationTimestamp"))],
    }
}

fn storage_class(object: &Value, created: &str) -> Vec<Value> {
    let mut name = text(object, "/metadata/name").to_owned();
    if defaults::is_default(object) {
        name.push_str(" (default)");
    }
    let expands = object.get("allowVolumeExpansion") == Some(&json!(true));
    vec![
        json!(name),
        json!(text(object, "/provisioner")),
        json!(text(object, "/reclaimPolicy")),
        json!(text(object, "/volumeBindingMode")),
        json!(expands),
        json!(created),
    ]
}

/// Joins the labels at a pointer; empty if there are none.
pub(super) fn labels(value: &Value, pointer: &str) -> String {
    let map = value.pointer(pointer).and_then(Value::as_object);
    let labels: Vec<String> = map
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    labels.join(",")
}

/// Returns the text, or `<none>` if it is empty.
pub(super) fn or_none(text: &str) -> &str {
    if text.is_empty() { "<none>" } else { text }
}

pub(super) fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.collect::<Vec<_>>().join(",")
}

fn data_count(object: &Value) -> Value {
    let count = |member: &str| {
        object
            .get(member)
            .and_then(Value::as_object)
            .map_or(0, serde_json::Map::len)
    };
    json!(count("data") + count("binaryData"))
}

fn number_or_percent(object: &Value, pointer: &str) -> String {
    match object.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => "N/A".to_owned(),
    }
}

fn stateful_set(set: &Value, created: &str) -> Vec<Value> {
    let number = |pointer: &str| set.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let containers = || list(set, "/spec/template/spec/containers");
    vec![
        json!(text(set, "/metadata/name")),
        json!(format!(
            "{}/{}",
            number("/status/readyReplicas"),
            number("/spec/replicas")
        )),
        json!(created),
        json!(joined(containers().map(|c| text(c, "/name")))),
        json!(joined(containers().map(|c| text(c, "/image")))),
    ]
}

fn access_modes(object: &Value, pointer: &str) -> String {
    joined(
        list(object, pointer)
            .filter_map(Value::as_str)
            .map(|mode| match mode {
                "ReadWriteOnce" => "RWO",
                "ReadOnlyMany" => "ROX",
                "ReadWriteMany" => "RWX",
                "ReadWriteOncePod" => "RWOP",
                other => other,
            }),
    )
}

fn or_unset(text: &str) -> &str {
    if text.is_empty() { "<unset>" } else { text }
}

fn phase(object: &Value) -> &str {
    if text(object, "/metadata/deletionTimestamp").is_empty() {
        text(object, "/status/phase")
    } else {
        "Terminating"
    }
}

fn claim(claim: &Value, created: &str) -> Vec<Value> {
    let bound = !text(claim, "/spec/volumeName").is_empty();
    let (capacity, modes) = if bound {
        let modes = access_modes(claim, "/status/accessModes");
        (text(claim, "/status/capacity/storage"), modes)
    } else {
        ("", String::new())
    };
    vec![
        json!(text(claim, "/metadata/name")),
        json!(phase(claim)),
        json!(text(claim, "/spec/volumeName")),
        json!(capacity),
        json!(modes),
        json!(text(claim, "/spec/storageClassName")),
        json!(or_unset(text(claim, "/spec/volumeAttributesClassName"))),
        json!(created),
        json!(text(claim, "/spec/volumeMode")),
    ]
}

fn volume(volume: &Value, created: &str) -> Vec<Value> {
    let claim = match text(volume, "/spec/claimRef/name") {
        "" => String::new(),
        name => format!("{}/{name}", text(volume, "/spec/claimRef/namespace")),
    };
    vec![
        json!(text(volume, "/metadata/name")),
        json!(text(volume, "/spec/capacity/storage")),
        json!(access_modes(volume, "/spec/accessModes")),
        json!(text(volume, "/spec/persistentVolumeReclaimPolicy")),
        json!(phase(volume)),
        json!(claim),
        json!(text(volume, "/spec/storageClassName")),
        json!(or_unset(text(volume, "/spec/volumeAttributesClassName"))),
        json!(text(volume, "/status/reason")),
        json!(created),
        json!(text(volume, "/spec/volumeMode")),
    ]
}

fn controller(object: &Value) -> String {
    let owner = list(object, "/metadata/ownerReferences")
        .find(|owner| owner.get("controller") == Some(&Value::Bool(true)));
    let Some(owner) = owner else {
        return "<none>".to_owned();
    };
    let kind = text(owner, "/kind").to_lowercase();
    let group = text(owner, "/apiVersion")
        .split_once('/')
        .map_or("", |(group, _)| group);
    let resource = if group.is_empty() {
        kind
    } else {
        format!("{kind}.{group}")
    };
    format!("{resource}/{}", text(owner, "/name"))
}

fn event(event: &Value, now: Timestamp) -> Vec<Value> {
    let first_of = |pointers: &[&str]| {
        let mut found = pointers.iter().map(|pointer| text(event, pointer));
        found
            .find(|text| !text.is_empty())
            .unwrap_or_default()
            .to_owned()
    };
    let kind = first_of(&["/involvedObject/kind", "/regarding/kind"]).to_lowercase();
    let name = first_of(&["/involvedObject/name", "/regarding/name"]);
    let object = match name.as_str() {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let first = first_of(&["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"]);
    let last = first_of(&[
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/deprecatedLastTimestamp",
    ]);
    let last = if last.is_empty() { &first } else { &last };
    let mut source = first_of(&[
        "/source/component",
        "/deprecatedSource/component",
        "/reportingComponent",
        "/reportingController",
    ]);
    let instance = first_of(&[
        "/source/host",
        "/deprecatedSource/host",
        "/reportingInstance",
    ]);
    if !instance.is_empty() {
        source = format!("{source}, {instance}");
    }
    let count = ["/series/count", "/count", "/deprecatedCount"]
        .iter()
        .find_map(|pointer| event.pointer(pointer)?.as_i64())
        .filter(|count| *count != 0)
        .unwrap_or(1);
    vec![
        json!(age(last, now)),
        json!(text(event, "/type")),
        json!(text(event, "/reason")),
        json!(object),
        json!(first_of(&[
            "/involvedObject/fieldPath",
            "/regarding/fieldPath"
        ])),
        json!(source),
        json!(first_of(&["/message", "/note"]).trim()),
        json!(age(&first, now)),
        json!(count),
        json!(text(event, "/metadata/name")),
    ]
}

fn node(node: &Value, created: &str) -> Vec<Value> {
    let ready = list(node, "/status/conditions").find(|c| text(c, "/type") == "Ready");
    let mut status = match ready.map(|c| text(c, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        status.push_str(",SchedulingDisabled");
    }
    let roles = node.pointer("/metadata/labels").and_then(Value::as_object);
    let roles = joined(
        roles
            .into_iter()
            .flatten()
            .filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/")),
    );
    let address = |kind: &str| {
        let found = list(node, "/status/addresses").find(|a| text(a, "/type") == kind);
        or_none(found.map_or("", |a| text(a, "/address"))).to_owned()
    };
    let info = |member: &str| match text(node, &format!("/status/nodeInfo/{member}")) {
        "" => "<unknown>".to_owned(),
        known => known.to_owned(),
    };
    vec![
        json!(text(node, "/metadata/name")),
        json!(status),
        json!(or_none(&roles)),
        json!(created),
        json!(text(node, "/status/nodeInfo/kubeletVersion")),
        json!(address("InternalIP")),
        json!(address("ExternalIP")),
        json!(info("osImage")),
        json!(info("kernelVersion")),
        json!(info("containerRuntimeVersion")),
    ]
}
