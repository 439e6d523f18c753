//! Rules of services.

use std::collections::BTreeSet;

use super::place::{Errors, Place};
use super::{names, rules};
use crate::status::FieldError;

/// Validates the ports, whose names and numbers are unique.
pub(super) fn service_ports(spec: &Place<'_>, errors: &mut Errors) {
    let is_headless = spec.text_of("clusterIP") == "None";
    let mut seen_names = BTreeSet::new();
    let mut seen_numbers = BTreeSet::new();
    let ports = spec.member("ports");
    let needs_name = ports.values().count() > 1;
    for port in ports.elements() {
        let name = port.member("name");
        if !name.is_empty() {
            name.invalid_for(names::dns_label(name.text()), errors);
            if !seen_names.insert(port.text_of("name")) {
                errors.push(name.duplicate());
            }
        } else if needs_name {
            errors.push(name.required(""));
        }
        rules::check("ServicePort", &port, errors);
        let number = port.member("port").number();
        let target = port.member("targetPort");
        if is_headless && target.value.is_number() && target.number() != number {
            // Headless services may have another target port, because nothing translates it.
            continue;
        }
        let protocol = port.text_of("protocol");
        if !seen_numbers.insert((protocol, number)) {
            errors.push(FieldError::duplicate_text(
                port.path(),
                &format!(
                    "{{\"Name\":\"\",\"Protocol\":{protocol:?},\"AppProtocol\":null,\"Port\":\
                     {number},\"TargetPort\":0,\"NodePort\":0}}"
                ),
            ));
        }
    }
}

/// Rejects changes of the first cluster IP and IP family. Services of type `ExternalName` are exempt.
pub(super) fn service_update(spec: &Place<'_>, errors: &mut Errors) {
    let Some(old) = spec.old else { return };
    if spec.value["type"] == "ExternalName" || old["type"] == "ExternalName" {
        return;
    }
    for member in ["clusterIPs", "ipFamilies"] {
        let (now, before) = (spec.value[member].get(0), old[member].get(0));
        if before.is_some() && now.is_some() && now != before {
            errors.push(FieldError::invalid(
                format!("{}[0]", spec.member(member).path()),
                &spec.value[member],
                "may not change once set",
            ));
        }
    }
}
