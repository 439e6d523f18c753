//! Rules of the resources of containers and pods.

use std::collections::BTreeSet;

use kube_apimachinery::quantity::Quantity;
use serde_json::{Map, Value, json};

use crate::go::names;
use crate::members::resources::{aggregate, amounts};
use crate::members::{list, text};
use crate::status::FieldError;
use crate::validation::engine::{Errors, Place, Pod};
use crate::validation::resource_names::{self, NamedFor, can_be_overcommitted, parsed};

const HUGE_PAGES: &str = "hugepages-";

/// Upstream: `ValidateContainerResourceRequirements`.
pub(in crate::validation) fn container_resources(resources: &Place<'_>, errors: &mut Errors) {
    requirements(resources, NamedFor::Containers, errors);
}

/// Upstream: `validateOverhead`.
pub(in crate::validation) fn overhead(overhead: &Place<'_>, errors: &mut Errors) {
    let limits = json!({"limits": overhead.value});
    requirements(&overhead.instead(&limits), NamedFor::Containers, errors);
}

/// Upstream: `validatePodResources`.
pub(in crate::validation) fn pod_resources(spec: &Place<'_>, errors: &mut Errors) {
    let resources = spec.member("resources");
    if spec.member("os").has("name", "windows") {
        errors.push(resources.forbidden("may not be set for a windows pod"));
        return;
    }
    let claims = resources.member("claims");
    if claims.is_present() {
        errors.push(claims.forbidden("claims may not be set for Resources at pod-level"));
    }
    requirements(&resources, NamedFor::Pods, errors);
    for (member, huge_pages_only) in [("requests", false), ("limits", true)] {
        for (name, sum) in aggregate(spec.value, member) {
            let own = resources.member(member);
            let own = own.value.get(name).and_then(Value::as_str);
            let is_compared = !huge_pages_only || name.starts_with(HUGE_PAGES);
            if let Some(own) = own.filter(|_| is_compared)
                && own.parse().is_ok_and(|own: Quantity| sum > own)
            {
                let field = format!("{}.{member}[{name}]", resources.path());
                let detail = format!(
                    "must be greater than or equal to aggregate container {member} of {sum}"
                );
                errors.push(FieldError::invalid(field, &json!(own), &detail));
            }
        }
    }
    for (i, container) in list(spec.value, "containers").enumerate() {
        let of_container = container
            .get("resources")
            .and_then(|it| amounts(it, "limits"));
        for (name, limit) in of_container.into_iter().flatten() {
            let own = resources.member("limits").value.get(name);
            if let Some(own) = own
                && parsed(limit)
                    .zip(parsed(own))
                    .is_some_and(|(limit, own)| limit > own)
            {
                let field = format!("{}.containers[{i}][{name}].limits", resources.path());
                let own = own.as_str().unwrap_or_default();
                let detail = format!("must be less than or equal to pod limits of {own}");
                errors.push(FieldError::invalid(field, limit, &detail));
            }
        }
    }
}

/// Upstream: `validateResourceRequirements`.
fn requirements(resources: &Place<'_>, named_for: NamedFor, errors: &mut Errors) {
    let path = resources.path();
    let limits = amounts(resources.value, "limits");
    let requests = amounts(resources.value, "requests");
    let has_old = resources
        .context
        .pod
        .is_some_and(|pod| pod.old.is_some_and(has_indivisible_pages));
    let one = |list: &str, name: &str, quantity: &Value, errors: &mut Errors| {
        let field = format!("{path}.{list}[{name}]");
        resource_names::validate(name, named_for, &field, errors);
        resource_names::of_quantity(name, quantity, &field, errors);
        if list == "requests" {
            errors.extend(against_limit(name, quantity, limits, &path));
        }
        let shown = quantity.as_str().unwrap_or_default();
        if !has_old && !is_divisible(name, quantity) {
            let detail = format!("{shown} is not positive integer multiple of {name}");
            errors.push(FieldError::invalid(field, quantity, &detail));
        }
    };
    for (name, quantity) in limits.into_iter().flatten() {
        // The overhead has limits without a name for their list.
        one("limits", name, quantity, errors);
    }
    for (name, quantity) in requests.into_iter().flatten() {
        one("requests", name, quantity, errors);
    }
    let mut all = [limits, requests].into_iter().flatten().flat_map(Map::keys);
    let has_pages = all.clone().any(|name| name.starts_with(HUGE_PAGES));
    if has_pages && !all.any(|name| matches!(name.as_str(), "cpu" | "memory")) {
        errors.push(resources.forbidden("HugePages require cpu or memory"));
    }
    claim_names(&resources.member("claims"), errors);
}

/// Returns the error of a request that doesn't suit its limit.
fn against_limit(
    name: &str,
    request: &Value,
    limits: Option<&Map<String, Value>>,
    path: &str,
) -> Option<FieldError> {
    let Some(limit) = limits.and_then(|limits| limits.get(name)) else {
        let detail = "Limit must be set for non overcommitable resources";
        let error = FieldError::required(format!("{path}.limits"), detail);
        return Some(error).filter(|_| !can_be_overcommitted(name));
    };
    let (wanted, most) = (parsed(request)?, parsed(limit)?);
    let relation = if wanted != most && !can_be_overcommitted(name) {
        "equal to"
    } else if wanted > most {
        "less than or equal to"
    } else {
        return None;
    };
    let limit = limit.as_str().unwrap_or_default();
    let detail = format!("must be {relation} {name} limit of {limit}");
    Some(FieldError::invalid(
        format!("{path}.requests"),
        request,
        &detail,
    ))
}

/// Upstream: `IsHugePageResourceValueDivisible`.
fn is_divisible(name: &str, quantity: &Value) -> bool {
    let Some(size) = name.strip_prefix(HUGE_PAGES) else {
        return true;
    };
    let size: Quantity = size.parse().unwrap_or_default();
    let is_size = size > Quantity::default() && size.milli_value() % 1000 == 0;
    is_size && parsed(quantity).is_none_or(|quantity| quantity.value() % size.value() == 0)
}

/// Returns true if a pod has a part of a page.
fn has_indivisible_pages(spec: &Value) -> bool {
    let containers = ["containers", "initContainers"];
    let mut containers = containers.iter().flat_map(|member| list(spec, member));
    containers.any(|container| {
        let resources = container.get("resources").unwrap_or(&Value::Null);
        let lists = ["limits", "requests"].map(|list| amounts(resources, list));
        let mut all = lists.into_iter().flatten().flatten();
        all.any(|(name, quantity)| !is_divisible(name, quantity))
    })
}

/// Upstream: `validateResourceClaimNames`.
fn claim_names(claims: &Place<'_>, errors: &mut Errors) {
    let of_pod = |pod: Pod<'_>| -> BTreeSet<String> {
        let names = list(pod.spec, "resourceClaims").map(|claim| text(claim, "name").to_owned());
        names.filter(|name| !name.is_empty()).collect()
    };
    let known = claims.context.pod.map(of_pod).unwrap_or_default();
    let mut seen: Vec<String> = Vec::new();
    for claim in claims.elements() {
        let [name, request] = ["name", "request"].map(|member| claim.text_of(member));
        let repeated = |shown: &str| FieldError::duplicate(claim.path(), &json!(shown));
        if name.is_empty() {
            errors.push(claim.required(""));
            continue;
        }
        if seen.iter().any(|seen| seen == name) {
            errors.push(repeated(name));
        } else {
            let key = match request {
                "" => name.to_owned(),
                request => format!("{name}/{request}"),
            };
            let of_name = format!("{name}/");
            if !request.is_empty() {
                let place = claim.member("request");
                place.invalid_for(names::dns_label(request), errors);
            }
            if seen.contains(&key) {
                errors.push(repeated(&key));
            } else if request.is_empty() {
                for _ in seen.iter().filter(|seen| seen.starts_with(&of_name)) {
                    errors.push(repeated(name));
                }
            }
            seen.push(key);
        }
        if !known.contains(name) {
            let mut error = FieldError::not_found(claim.path(), &json!(name));
            error.message += ": must be one of the names in pod.spec.resourceClaims";
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            error.message += if known.is_empty() {
                " which is empty"
            } else {
                ": "
            };
            error.message += &known.join(", ");
            errors.push(error);
        }
    }
}
