//! The sources of cells.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::{age, human_duration};
use super::texts::{joined, labels, list, number, or, or_none, text};
use super::{
    access, api_services, autoscalers, certificate_signing_requests, ingresses, jobs, network,
    pods, policies, workloads,
};
use crate::defaults;

/// Returns a cell of an object.
pub(super) type Source = fn(&Value, args: &[&str], now: Timestamp) -> Value;

const SOURCES: &[(&str, Source)] = &[
    ("age", |object, args, now| {
        age(first_of(object, args), now).into()
    }),
    ("age_or_none", |object, args, now| {
        match first_of(object, args) {
            "" => "<none>".into(),
            time => age(time, now).into(),
        }
    }),
    ("all", |object, args, _| {
        or_none(&joined(list(object, args[0]).filter_map(Value::as_str))).into()
    }),
    ("any", |object, args, _| {
        or_none(first_of(object, args)).into()
    }),
    ("api_service", |service, _, _| {
        api_services::service(service).into()
    }),
    ("api_service_available", |service, _, _| {
        api_services::availability(service).into()
    }),
    ("audiences", |driver, _, _| {
        let requests = list(driver, "/spec/tokenRequests");
        or(&joined(requests.map(|it| text(it, "/audience"))), "<unset>").into()
    }),
    ("capital", |object, args, _| capital(object, args[0]).into()),
    ("claim", |volume, _, _| claim_of(volume).into()),
    ("claim_capacity", |claim, _, _| {
        if_bound(claim, text(claim, "/status/capacity/storage")).into()
    }),
    ("claim_modes", |claim, _, _| {
        if_bound(claim, &access_modes(claim, "/status/accessModes")).into()
    }),
    ("class_name", |class, _, _| class_name(class).into()),
    ("controller", |object, _, _| controller(object).into()),
    ("count", |object, args, _| {
        number_or_percent(object, args[0]).into()
    }),
    ("count_or_unset", |object, args, _| {
        let count = object.pointer(args[0]).and_then(Value::as_i64);
        count
            .map_or_else(|| "<unset>".to_owned(), |count| count.to_string())
            .into()
    }),
    ("created", |object, _, now| {
        age(text(object, "/metadata/creationTimestamp"), now).into()
    }),
    ("data", |object, _, _| data_count(object)),
    ("each", |object, args, _| {
        joined(list(object, args[0]).map(|element| text(element, args[1]))).into()
    }),
    ("endpoints", |endpoints, _, _| {
        network::endpoints(endpoints).into()
    }),
    ("event_count", |event, _, _| event_count(event).into()),
    ("event_object", |event, _, _| event_object(event).into()),
    ("event_source", |event, _, _| event_source(event).into()),
    ("flag", |object, args, _| {
        (object.pointer(args[0]) == Some(&json!(true))).into()
    }),
    ("ingress_addresses", |ingress, _, _| {
        network::balancer_addresses(ingress).into()
    }),
    ("ingress_hosts", |ingress, _, _| {
        ingresses::hosts(ingress).into()
    }),
    ("ingress_parameters", |class, _, _| {
        ingresses::parameters(class).into()
    }),
    ("ingress_ports", |ingress, _, _| {
        ingresses::ports(ingress).into()
    }),
    ("job_completions", |job, _, _| jobs::completions(job).into()),
    ("job_duration", |job, _, now| {
        jobs::duration(job, now).into()
    }),
    ("job_status", |job, _, _| jobs::status(job).into()),
    ("known", |object, args, _| {
        or(first_of(object, args), "<unknown>").into()
    }),
    ("labels", |object, args, _| {
        or_none(&labels(object, args[0])).into()
    }),
    ("length", |object, args, _| {
        list(object, args[0]).len().into()
    }),
    ("missing_level", |schema, _, _| missing_level(schema).into()),
    ("modes", |object, args, _| {
        access_modes(object, args[0]).into()
    }),
    ("name", |object, _, _| text(object, "/metadata/name").into()),
    ("node_address", |node, args, _| {
        node_address(node, args[0]).into()
    }),
    ("node_roles", |node, _, _| or_none(&node_roles(node)).into()),
    ("node_status", |node, _, _| node_status(node).into()),
    ("number", |object, args, _| number(object, args[0]).into()),
    ("number_or_none", |object, args, _| {
        let number = object.pointer(args[0]);
        number.cloned().unwrap_or_else(|| "<none>".into())
    }),
    ("phase", |object, _, _| phase(object).into()),
    ("policy_param_kind", |policy, _, _| {
        policies::param_kind(policy).into()
    }),
    ("policy_param_ref", |binding, _, _| {
        policies::param_reference(binding).into()
    }),
    ("pod_gates", |pod, _, _| pods::gates(pod).into()),
    ("pod_ready", |pod, _, _| pods::ready(pod).into()),
    ("pod_restarts", |pod, _, now| {
        pods::restarts(pod, now).into()
    }),
    ("pod_status", |pod, _, _| pods::status(pod).into()),
    ("quota", |quota, args, _| {
        access::quota(quota, !args.is_empty()).into()
    }),
    ("ratio", |object, args, _| {
        format!("{}/{}", number(object, args[0]), number(object, args[1])).into()
    }),
    ("resource_claim", |claim, _, _| resource_claim(claim).into()),
    ("role", |binding, _, _| access::role(binding).into()),
    ("scale_metrics", |autoscaler, _, _| {
        autoscalers::metrics(autoscaler).into()
    }),
    ("scale_target", |autoscaler, _, _| {
        autoscalers::target(autoscaler).into()
    }),
    ("seconds_or_none", |object, args, _| {
        let seconds = object.pointer(args[0]).and_then(Value::as_i64);
        seconds
            .map_or_else(|| "<none>".to_owned(), human_duration)
            .into()
    }),
    ("selector", |object, args, _| {
        let pointer = args.first().unwrap_or(&"/spec/selector");
        workloads::selector(object, pointer).into()
    }),
    ("service_address", |service, _, _| {
        network::external_address(service).into()
    }),
    ("service_ports", |service, _, _| {
        network::service_ports(service).into()
    }),
    ("set", |object, args, _| {
        or(first_of(object, args), "<unset>").into()
    }),
    ("signing_status", |request, _, _| {
        certificate_signing_requests::status(request).into()
    }),
    ("slice_endpoints", |slice, _, _| {
        network::slice_endpoints(slice).into()
    }),
    ("slice_ports", |slice, _, _| {
        network::slice_ports(slice).into()
    }),
    ("subjects", |binding, args, _| {
        access::subjects(binding, args[0]).into()
    }),
    ("text", |object, args, _| first_of(object, args).into()),
    ("trimmed", |object, args, _| {
        first_of(object, args).trim().into()
    }),
];

pub(super) fn source(name: &str) -> Option<Source> {
    let row = SOURCES.iter().find(|(known, _)| *known == name);
    row.map(|(_, source)| *source)
}

/// Returns the first text that isn't empty.
fn first_of<'a>(object: &'a Value, pointers: &[&str]) -> &'a str {
    let mut found = pointers.iter().map(|pointer| text(object, pointer));
    found.find(|text| !text.is_empty()).unwrap_or_default()
}

fn class_name(class: &Value) -> String {
    let name = text(class, "/metadata/name");
    if defaults::is_default(class) {
        format!("{name} (default)")
    } else {
        name.to_owned()
    }
}

/// Formats a flag as Python does; `<unset>` if it is missing.
///
/// Upstream: `printBoolPtr`
fn capital<'a>(object: &Value, pointer: &str) -> &'a str {
    match object.pointer(pointer) {
        Some(Value::Bool(true)) => "True",
        Some(Value::Bool(false)) => "False",
        _ => "<unset>",
    }
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

fn phase(object: &Value) -> &str {
    if text(object, "/metadata/deletionTimestamp").is_empty() {
        text(object, "/status/phase")
    } else {
        "Terminating"
    }
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

/// Returns a text about a claim's volume; empty before the claim has one.
fn if_bound<'a>(claim: &Value, text_of: &'a str) -> &'a str {
    if text(claim, "/spec/volumeName").is_empty() {
        ""
    } else {
        text_of
    }
}

fn claim_of(volume: &Value) -> String {
    match text(volume, "/spec/claimRef/name") {
        "" => String::new(),
        name => format!("{}/{name}", text(volume, "/spec/claimRef/namespace")),
    }
}

/// Returns the state of a claim of devices.
fn resource_claim(claim: &Value) -> String {
    let is_deleted = !text(claim, "/metadata/deletionTimestamp").is_empty();
    let is_allocated = claim.pointer("/status/allocation").is_some();
    let is_reserved = list(claim, "/status/reservedFor").next().is_some();
    let states = [
        ("deleted", is_deleted),
        ("pending", !is_deleted && !is_allocated),
        ("allocated", is_allocated),
        ("reserved", is_allocated && is_reserved),
    ];
    joined(
        states
            .iter()
            .filter(|(_, holds)| *holds)
            .map(|(state, _)| *state),
    )
}

/// Returns the status of the condition that a schema names no priority level.
fn missing_level(schema: &Value) -> &str {
    let mut conditions = list(schema, "/status/conditions");
    let dangling = conditions.find(|condition| text(condition, "/type") == "Dangling");
    dangling.map_or("?", |condition| text(condition, "/status"))
}

fn event_object(event: &Value) -> String {
    let kind = text(event, "/involvedObject/kind").to_lowercase();
    match text(event, "/involvedObject/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn event_source(event: &Value) -> String {
    let source = first_of(event, &["/source/component", "/reportingComponent"]);
    match first_of(event, &["/source/host", "/reportingInstance"]) {
        "" => source.to_owned(),
        host => format!("{source}, {host}"),
    }
}

fn event_count(event: &Value) -> i64 {
    ["/series/count", "/count"]
        .iter()
        .find_map(|pointer| event.pointer(pointer)?.as_i64())
        .filter(|count| *count != 0)
        .unwrap_or(1)
}

fn node_status(node: &Value) -> String {
    let ready = list(node, "/status/conditions").find(|c| text(c, "/type") == "Ready");
    let status = match ready.map(|c| text(c, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    if node.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        format!("{status},SchedulingDisabled")
    } else {
        status.to_owned()
    }
}

fn node_roles(node: &Value) -> String {
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object);
    let keys = labels.into_iter().flatten().map(|(key, _)| key);
    joined(keys.filter_map(|key| key.strip_prefix("node-role.kubernetes.io/")))
}

fn node_address<'a>(node: &'a Value, kind: &str) -> &'a str {
    let found = list(node, "/status/addresses").find(|a| text(a, "/type") == kind);
    or_none(found.map_or("", |a| text(a, "/address")))
}
