//! Defaults of kinds besides those in the table.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube_apimachinery::schema::canonical_base64;
use serde_json::{Map, Value, json};

use crate::go::strconv::parse_int;
use crate::members::object_mut;
use crate::object::MetadataRef;

/// The annotation that counts a daemon set's templates.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The annotations that mark the default class.
const IS_DEFAULT: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

/// Secrets: the write-only `stringData`.
pub(super) fn secret(value: &mut Value) {
    let is_text = |texts: &Map<String, Value>| texts.values().all(Value::is_string);
    let Some(members) = value.as_object_mut() else {
        return;
    };
    let texts = match members.get("stringData") {
        Some(Value::Object(texts)) if is_text(texts) => texts.clone(),
        _ => return,
    };
    members.remove("stringData");
    if texts.is_empty() {
        return;
    }
    let data = members.entry("data").or_insert(Value::Null);
    if data.is_null() {
        *data = json!({});
    }
    if let Some(data) = data.as_object_mut() {
        for (key, text) in texts {
            let text = text.as_str().unwrap_or_default();
            let is_decoded = data.get(&key).is_none_or(|old| {
                old.is_null()
                    || old
                        .as_str()
                        .is_some_and(|old| canonical_base64(old).is_ok())
            });
            // The error of another value comes first.
            if is_decoded {
                data.insert(key, json!(STANDARD.encode(text)));
            }
        }
    }
}

/// API services: the port of the service.
///
/// Upstream: `SetDefaults_ServiceReference`.
pub(super) fn api_service(value: &mut Value) {
    let service = value.pointer_mut("/spec/service");
    if let Some(service) = service.and_then(Value::as_object_mut) {
        let port = service.entry("port").or_insert(Value::Null);
        if port.is_null() {
            *port = json!(443);
        }
    }
}

/// Slices of devices: the time of new taints.
///
/// Upstream: `SetDefaults_DeviceTaint`.
pub(super) fn resource_slice(value: &mut Value, now: &str) {
    for device in list(value, "/spec/devices") {
        let taints = device.get_mut("taints").and_then(Value::as_array_mut);
        let taints = taints.into_iter().flatten();
        for taint in taints.filter_map(Value::as_object_mut) {
            let added = taint.entry("timeAdded").or_insert(Value::Null);
            if added.is_null() {
                *added = json!(now);
            }
        }
    }
}

/// Claims of devices: the status of a device goes with its allocation.
///
/// Upstream: `dropDeallocatedStatusDevices`.
pub(super) fn drop_deallocated(new: &mut Value, old: Option<&Value>) {
    let allocated = |claim: &Value| {
        let results = claim.pointer("/status/allocation/devices/results");
        let results = results.and_then(Value::as_array).into_iter().flatten();
        results.map(device_id).collect::<Vec<_>>()
    };
    let (before, after) = (old.map(allocated).unwrap_or_default(), allocated(new));
    let is_gone = |id: &[Value; 4]| before.contains(id) && !after.contains(id);
    let Some(status) = new.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(devices) = status.get_mut("devices").and_then(Value::as_array_mut) {
        devices.retain(|device| !is_gone(&device_id(device)));
        if devices.is_empty() {
            status.remove("devices");
        }
    }
}

fn device_id(device: &Value) -> [Value; 4] {
    ["driver", "pool", "device", "shareID"].map(|member| device[member].clone())
}

/// Namespaces: the label with the name.
pub(super) fn namespace(value: &mut Value) {
    let name = value.pointer("/metadata/name").cloned();
    if let Some(name) = name.filter(Value::is_string)
        && let Some(labels) = child(&mut value["metadata"], "labels")
    {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name);
    }
}

/// Limit ranges: a limit defaults to the maximum, a request to the default limit or else to the
/// minimum.
///
/// Upstream: `SetDefaults_LimitRangeItem`.
pub(super) fn limit_range(value: &mut Value) {
    for item in list(value, "/spec/limits") {
        if item.get("type") != Some(&json!("Container")) {
            continue;
        }
        for (into, from) in [
            ("default", "max"),
            ("defaultRequest", "default"),
            ("defaultRequest", "min"),
        ] {
            let Some(Value::Object(known)) = item.get(from).cloned() else {
                continue;
            };
            let into = item.entry(into).or_insert_with(|| json!({}));
            if let Some(into) = into.as_object_mut() {
                for (resource, quantity) in known {
                    into.entry(resource).or_insert(quantity);
                }
            }
        }
    }
}

/// Network policies: the directions of the traffic that they concern.
///
/// Upstream: `SetDefaults_NetworkPolicy`.
pub(super) fn network_policy(value: &mut Value) {
    let count = |value: &Value, pointer: &str| {
        let list = value.pointer(pointer).and_then(Value::as_array);
        list.map_or(0, Vec::len)
    };
    let types = value.pointer("/spec/policyTypes");
    if types.is_some_and(|types| !types.is_null() && *types != json!([])) {
        return;
    }
    let egress = (count(value, "/spec/egress") > 0).then_some("Egress");
    let types: Vec<&str> = ["Ingress"].into_iter().chain(egress).collect();
    if let Some(spec) = child(value, "spec") {
        spec.insert("policyTypes".to_owned(), json!(types));
    }
}

/// Service accounts: references to secrets are names.
///
/// Upstream: `cleanSecretReferences`.
pub(super) fn drop_all_but_names(account: &mut Value) {
    for secret in list(account, "/secrets") {
        secret.retain(|member, _| member == "name");
    }
}

/// Slices of endpoints: the old topology of changed endpoints. A label with the node's name that the
/// stored slice has goes into the field for it.
///
/// Upstream: `dropTopologyOnV1`.
pub(super) fn drop_topology(slice: &mut Value, old: Option<&Value>) {
    const HOST: &str = "kubernetes.io/hostname";
    const TOPOLOGY: &str = "deprecatedTopology";
    let stored = old.and_then(|old| old.get("endpoints"));
    if old.is_some() && stored == slice.get("endpoints") {
        return;
    }
    let stored = stored.and_then(Value::as_array).into_iter().flatten();
    let hosts: Vec<&Value> = stored
        .filter_map(|endpoint| endpoint.get(TOPOLOGY)?.get(HOST))
        .collect();
    for endpoint in list(slice, "/endpoints") {
        let topology = endpoint.remove(TOPOLOGY);
        let host = topology.and_then(|topology| topology.get(HOST).cloned());
        if let Some(host) = host.filter(|host| hosts.contains(&host)) {
            endpoint.entry("nodeName").or_insert(host);
        }
    }
}

/// Replication controllers: selector and labels from those of the template.
///
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
}

/// Reads a daemon set's template counter; 0 if it has none.
fn template_generation(set: &Value) -> Result<i64, String> {
    let annotations = MetadataRef(set.get("metadata"));
    annotations
        .annotation(TEMPLATE_GENERATION)
        .map_or(Ok(0), parse_int)
}

/// Converts a daemon set to upstream's internal type, in which the template counter is a number, and
/// back.
///
/// # Errors
///
/// The annotation with the counter is no integer.
///
/// Upstream: `Convert_v1_DaemonSet_To_apps_DaemonSet`.
pub(crate) fn convert_daemon_set(set: &mut Value) -> Result<(), String> {
    let count = template_generation(set)?;
    set_template_generation(set, count);
    Ok(())
}

fn set_template_generation(set: &mut Value, count: i64) {
    if let Some(annotations) = child(&mut set["metadata"], "annotations") {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), json!(count.to_string()));
    }
}

/// Updates a daemon set's template counter; a new set starts at 1.
pub fn count_templates(new: &mut Value, old: Option<&Value>) {
    let count = |value: &Value| template_generation(value).unwrap_or_default();
    let count = match old {
        None => count(new).max(1),
        Some(old) => {
            let changed = new.pointer("/spec/template") != old.pointer("/spec/template");
            count(old).wrapping_add(i64::from(changed))
        }
    };
    set_template_generation(new, count);
}

/// Returns true if claims without a class use this one.
///
/// Upstream: `IsDefaultAnnotationText`
pub fn is_default(class: &Value) -> bool {
    let metadata = MetadataRef(class.get("metadata"));
    IS_DEFAULT
        .iter()
        .any(|mark| metadata.annotation(mark) == Some("true"))
}

/// Returns a field that is an object, created if it is absent or null; `None` if it is of another
/// type.
fn child<'a>(value: &'a mut Value, member: &str) -> Option<&'a mut Map<String, Value>> {
    let slot = value.as_object_mut()?.entry(member).or_insert(Value::Null);
    if slot.is_null() {
        *slot = json!({});
    }
    slot.as_object_mut()
}

fn list<'a>(
    value: &'a mut Value,
    pointer: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    value
        .pointer_mut(pointer)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
}
