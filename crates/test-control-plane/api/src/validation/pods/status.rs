//! Rules of the status of pods.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::go::{ip, names};
use crate::members::{at, list, number_at, text, text_at};
use crate::status::FieldError;
use crate::validation::engine::{Errors, Place};

pub(in crate::validation) fn nominated_node(name: &Place<'_>, errors: &mut Errors) {
    if name.is_empty() || !name.is_changed() {
        return;
    }
    name.invalid_for(names::dns_subdomain(name.text()), errors);
    let old = name.context.pod.and_then(|pod| pod.old);
    if old.is_some_and(|old| !text(old, "nodeName").is_empty()) {
        let detail = "may not be set on pods that are already bound to a node";
        errors.push(name.forbidden(detail));
    }
}

/// Rejects a container that runs again but wouldn't restart.
///
/// Upstream: `ValidateContainerStateTransition`, `ValidateInitContainerStateTransition`.
pub(in crate::validation) fn restarted(statuses: &Place<'_>, errors: &mut Errors) {
    let Some(old_spec) = statuses.context.pod.and_then(|pod| pod.old) else {
        return;
    };
    let path = statuses.path();
    let member = match path.as_str() {
        "status.initContainerStatuses" => "initContainers",
        "status.containerStatuses" => "containers",
        _ => "",
    };
    let restarts_all = |member: &str| {
        let mut rules = list(old_spec, member).flat_map(|it| list(it, "restartPolicyRules"));
        rules.any(|rule| text(rule, "action") == "RestartAllContainers")
    };
    if !member.is_empty()
        && ["containers", "initContainers"]
            .into_iter()
            .any(restarts_all)
    {
        return;
    }
    let old = statuses.old.and_then(Value::as_array).into_iter().flatten();
    for (i, old) in old.enumerate() {
        let Some(end) = at(old, "/state/terminated") else {
            continue;
        };
        let name = text(old, "name");
        let new = statuses.values().find(|new| new.text_of("name") == name);
        if new.is_none_or(|new| new.member("state.terminated").is_present()) {
            continue;
        }
        let container = list(old_spec, member).find(|container| text(container, "name") == name);
        let code = number_at(end, "/exitCode");
        if !container.is_some_and(|container| restarts(container, old_spec, code)) {
            let detail = "may not be transitioned to non-terminated state";
            errors.push(FieldError::forbidden(format!("{path}[{i}].state"), detail));
        }
    }
}

/// Upstream: `ContainerShouldRestart`.
fn restarts(container: &Value, spec: &Value, code: i64) -> bool {
    let own = text(container, "restartPolicy");
    let matches = |rule: &&Value| {
        let mut codes = rule
            .get("exitCodes")
            .map(|codes| list(codes, "values"))
            .into_iter()
            .flatten();
        let has = codes.any(|value| value.as_i64() == Some(code));
        match text_at(rule, "/exitCodes/operator") {
            "In" => has,
            "NotIn" => !has,
            _ => false,
        }
    };
    let has_rule = list(container, "restartPolicyRules").any(|rule| matches(&rule));
    if !own.is_empty() && has_rule {
        return true;
    }
    match if own.is_empty() {
        text(spec, "restartPolicy")
    } else {
        own
    } {
        "OnFailure" => code != 0,
        "Never" => false,
        _ => true,
    }
}

/// Upstream: `validatePodExtendedResourceClaimStatus`, for one request.
pub(in crate::validation) fn extended_request(mapping: &Place<'_>, errors: &mut Errors) {
    let members = ["containerName", "resourceName", "requestName"];
    let [container, resource, request] = members.map(|member| mapping.member(member));
    let spec = mapping.pod_spec();
    let mut containers = ["initContainers", "containers"]
        .into_iter()
        .flat_map(|it| list(spec, it));
    let found = containers.rfind(|it| text(it, "name") == container.text());
    match found.map(|found| found.pointer("/resources/requests")) {
        None => {
            let detail = "must match the name of an entry in spec.initContainers.name or \
                          spec.containers.name";
            container.invalid_for([detail], errors);
        }
        Some(requests) if requests.is_none_or(|it| it.get(resource.text()).is_none()) => {
            let detail = "must match the extended resource name of an entry in \
                          spec.initContainers.resources.requests or \
                          spec.containers.resources.requests";
            resource.invalid_for([detail], errors);
        }
        Some(_) => {}
    }
    // The error names the field of the status.
    let shown = mapping.member_as("requestName", "^^requestName");
    shown.invalid_for(names::dns_label(request.text()), errors);
    let is_same = |other: &Value| {
        let mut members = members.iter();
        members.all(|member| text(other, member) == mapping.text_of(member))
    };
    if mapping.before().iter().any(is_same) {
        errors.extend([&container, &resource, &request].map(Place::duplicate));
    }
}

/// Upstream: `validatePodResourceClaimStatuses`.
pub(in crate::validation) fn pod_claim(name: &Place<'_>, errors: &mut Errors) {
    let known = list(name.pod_spec(), "resourceClaims");
    if known
        .clone()
        .all(|claim| text(claim, "name") != name.text())
    {
        let detail = "must match the name of an entry in `spec.resourceClaims`";
        name.invalid_for([detail], errors);
    }
    let before = name.up().map(Place::before).unwrap_or_default();
    if before
        .iter()
        .any(|other| text(other, "name") == name.text())
    {
        errors.push(name.duplicate());
    }
}

/// Validates an address, whose errors name the whole element. Stored addresses may stay.
pub(in crate::validation) fn status_ip(address: &Place<'_>, errors: &mut Errors) {
    let text = address.text_of("ip");
    let old = address
        .up()
        .and_then(|list| list.old)
        .and_then(Value::as_array);
    let is_kept = old.is_some_and(|old| old.iter().any(|old| old["ip"] == text));
    if !is_kept {
        let shown = json!(text);
        address
            .instead(&shown)
            .invalid_for(ip::errors(text), errors);
    }
}

/// Rejects several addresses of one family.
///
/// Upstream: `validatePodIPs`, `validateHostIPs`.
pub(in crate::validation) fn one_per_family(addresses: &Place<'_>, errors: &mut Errors) {
    let texts: Vec<&str> = addresses
        .value
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| text(it, "ip"))
        .collect();
    if texts.len() < 2 {
        return;
    }
    let parsed = texts.iter().map(|text| ip::parse_sloppy(text));
    let parsed: Vec<IpAddr> = parsed.map_while(|it| it).collect();
    if let Some(wrong) = texts.get(parsed.len()) {
        let detail = format!(
            "failed to check for dual stack with error:invalid IP[{}]: {wrong}",
            parsed.len()
        );
        errors.push(FieldError::internal(addresses.path(), &detail));
    }
    let is_dual = parsed.iter().any(IpAddr::is_ipv4) && parsed.iter().any(IpAddr::is_ipv6);
    if texts.len() > 2 || parsed.len() < texts.len() || !is_dual {
        let detail = "may specify no more than one IP for each IP family";
        errors.push(addresses.invalid(detail));
    }
}

pub(in crate::validation) fn host_address(addresses: &Place<'_>, errors: &mut Errors) {
    let Some(first) = addresses.elements().next() else {
        return;
    };
    let host = addresses.up().map_or("", |status| status.text_of("hostIP"));
    let first = first.member("ip");
    if first.text() != host {
        first.invalid_for(["must be equal to `hostIP`"], errors);
    }
}

/// Upstream: `validateContainerStatusAllocatedResourcesStatus`.
pub(in crate::validation) fn allocated_resource(status: &Place<'_>, errors: &mut Errors) {
    let name = status.member("name");
    let of = status.up().and_then(Place::up);
    let container_name = of.map_or("", |of| of.text_of("name"));
    let member = match of.and_then(Place::up).map(Place::path).as_deref() {
        Some("status.initContainerStatuses") => "initContainers",
        _ => "containers",
    };
    let mut containers = list(status.pod_spec(), member);
    let Some(container) = containers.find(|it| text(it, "name") == container_name) else {
        return;
    };
    let resources = container.get("resources").unwrap_or(&Value::Null);
    let (is_known, detail) = if let Some(claim) = name.text().strip_prefix("claim:") {
        let key = |claim: &Value| match text(claim, "request") {
            "" => text(claim, "name").to_owned(),
            request => format!("{}/{request}", text(claim, "name")),
        };
        let is_known = list(resources, "claims").any(|known| key(known) == claim);
        let detail = "must match one of the container's resource claims in a format \
                      'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";
        (is_known, detail)
    } else {
        let requests = resources.get("requests").unwrap_or(&Value::Null);
        let is_known = requests.get(name.text()).is_some();
        (
            is_known,
            "must match one of the container's resource requests",
        )
    };
    if !is_known {
        name.invalid_for([detail], errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_and_rules_decide_about_restarts() {
        let spec = json!({"restartPolicy": "Never"});
        assert!(!restarts(&json!({}), &spec, 1));
        let container = json!({"restartPolicy": "OnFailure"});
        assert!(restarts(&container, &spec, 1));
        assert!(!restarts(&container, &spec, 0));
        let rule = json!({"action": "Restart", "exitCodes": {"operator": "In", "values": [3]}});
        let container = json!({"restartPolicy": "Never", "restartPolicyRules": [rule]});
        assert!(restarts(&container, &spec, 3));
        assert!(!restarts(&container, &spec, 4));
    }
}
