//! Rules of services.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::{FieldError, Subject, at, label_selector, names};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

pub(super) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub(super) fn service(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    let null = Value::Null;
    let spec = subject.new.value.get("spec").unwrap_or(&null);
    let text = |member: &str| spec.get(member).and_then(Value::as_str).unwrap_or_default();
    let service_type = text("type");
    if !TYPES.contains(&service_type) {
        let value = json!(service_type);
        errors.push(FieldError::not_supported("spec.type", &value, &TYPES));
    }
    let ports = at(spec, "/ports").and_then(Value::as_array);
    let is_external = service_type == "ExternalName";
    let is_headless = text("clusterIP") == "None";
    if ports.is_none_or(Vec::is_empty) && !is_headless && !is_external {
        errors.push(FieldError::required("spec.ports", ""));
    }
    if is_external {
        if text("externalName").is_empty() {
            errors.push(FieldError::required("spec.externalName", ""));
        } else {
            for message in names::dns_subdomain(text("externalName")) {
                let value = json!(text("externalName"));
                errors.push(FieldError::invalid("spec.externalName", &value, message));
            }
        }
        if !text("clusterIP").is_empty() {
            errors.push(FieldError::invalid(
                "spec.clusterIPs",
                &spec.get("clusterIPs").cloned().unwrap_or(Value::Null),
                "may not be set for ExternalName services",
            ));
        }
    } else if !is_headless && !text("clusterIP").is_empty() {
        address(text("clusterIP"), errors);
    }
    validate_ports(ports.map_or(&[], Vec::as_slice), is_headless, errors);
    label_selector::labels(spec.get("selector"), "spec.selector", errors);
    let affinity = text("sessionAffinity");
    if affinity != "None" && affinity != "ClientIP" {
        let known = ["ClientIP", "None"];
        let value = json!(affinity);
        errors.push(FieldError::not_supported(
            "spec.sessionAffinity",
            &value,
            &known,
        ));
    }
    for (i, port) in ports.into_iter().flatten().enumerate() {
        if service_type == "ClusterIP" && port.get("nodePort").is_some_and(|n| *n != 0) {
            let field = format!("spec.ports[{i}].nodePort");
            let detail = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(field, detail));
        }
    }
    if let Some(policy) = at(spec, "/internalTrafficPolicy")
        && policy != "Cluster"
        && policy != "Local"
    {
        let field = "spec.internalTrafficPolicy";
        errors.push(FieldError::not_supported(
            field,
            policy,
            &["Cluster", "Local"],
        ));
    }
    if let Some(old) = subject.old {
        immutable(spec, old.value.get("spec").unwrap_or(&null), errors);
    }
}

fn address(text: &str, errors: &mut Vec<FieldError>) {
    if text.parse::<IpAddr>().is_err() {
        errors.push(FieldError::invalid(
            "spec.clusterIPs[0]",
            &json!(text),
            "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ));
    }
}

fn validate_ports(ports: &[Value], is_headless: bool, errors: &mut Vec<FieldError>) {
    let mut seen_names = BTreeSet::new();
    let mut seen_numbers = BTreeSet::new();
    for (i, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{i}]");
        let text = |member: &str| port.get(member).and_then(Value::as_str).unwrap_or_default();
        let name = text("name");
        if name.is_empty() {
            if ports.len() > 1 {
                errors.push(FieldError::required(format!("{path}.name"), ""));
            }
        } else {
            for message in names::dns_label(name) {
                let field = format!("{path}.name");
                errors.push(FieldError::invalid(field, &json!(name), message));
            }
            if !seen_names.insert(name) {
                errors.push(FieldError::duplicate(format!("{path}.name"), &json!(name)));
            }
        }
        let number = port.get("port").and_then(Value::as_i64).unwrap_or(0);
        if !(1..=65535).contains(&number) {
            let detail = "must be between 1 and 65535, inclusive";
            let field = format!("{path}.port");
            errors.push(FieldError::invalid(field, &json!(number), detail));
        }
        let protocol = text("protocol");
        if !PROTOCOLS.contains(&protocol) {
            let field = format!("{path}.protocol");
            errors.push(FieldError::not_supported(
                field,
                &json!(protocol),
                &PROTOCOLS,
            ));
        }
        target(port, &path, errors);
        if is_headless
            && port
                .get("targetPort")
                .is_some_and(|t| t.is_number() && *t != number)
        {
            // Headless services may have another target port, because nothing translates it.
            continue;
        }
        if !seen_numbers.insert((protocol, number)) {
            errors.push(FieldError::duplicate_text(
                path,
                &format!(
                    "{{\"Name\":\"\",\"Protocol\":{protocol:?},\"AppProtocol\":null,\"Port\":\
                     {number},\"TargetPort\":0,\"NodePort\":0}}"
                ),
            ));
        }
    }
}

/// Validates the number or name of the pods' port.
fn target(port: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let field = format!("{path}.targetPort");
    match port.get("targetPort") {
        Some(Value::String(name)) => {
            for message in names::port_name(name) {
                errors.push(FieldError::invalid(field.as_str(), &json!(name), message));
            }
        }
        Some(number) if number.as_i64().is_some_and(|n| !(1..=65535).contains(&n)) => {
            let detail = "must be between 1 and 65535, inclusive";
            errors.push(FieldError::invalid(field, number, detail));
        }
        _ => {}
    }
}

/// Rejects changes of the first cluster IP and IP family. Services of type `ExternalName` are exempt.
fn immutable(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let is_external = |spec: &Value| spec.get("type") == Some(&json!("ExternalName"));
    if is_external(new) || is_external(old) {
        return;
    }
    for member in ["clusterIPs", "ipFamilies"] {
        let first = |spec: &Value| spec.get(member).and_then(|list| list.get(0)).cloned();
        let (now, before) = (first(new), first(old));
        if before.is_some() && now.is_some() && now != before {
            errors.push(FieldError::invalid(
                format!("spec.{member}[0]"),
                new.get(member).unwrap_or(&Value::Null),
                "may not change once set",
            ));
        }
    }
}
