//! API services.

use serde_json::{Value, json};

use super::engine::{Errors, Place};
use crate::go::names;

/// The largest priority of a group.
const GROUP_PRIORITY_MAX: i64 = 20_000;

/// The largest priority of a version in its group.
const VERSION_PRIORITY_MAX: i64 = 1000;

/// Upstream: `ValidateAPIService`
pub(super) fn api_service(object: &Place<'_>, errors: &mut Errors) {
    let spec = object.member("spec");
    let (group, version) = (spec.member("group"), spec.member("version"));
    let metadata = object.member("metadata");
    let name = metadata.member("name");
    let required = format!("{}.{}", version.text(), group.text());
    if names::path_segment(name.text()).is_empty() && name.text() != required {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {required:?}");
        errors.push(name.invalid(&detail));
    }
    if group.text().is_empty() && version.text() != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.push(group.required(detail));
    }
    if !group.text().is_empty() {
        let found = names::dns_subdomain(group.text());
        errors.extend(found.iter().map(|message| group.invalid(message)));
    }
    let found = names::letter_label(version.text());
    errors.extend(found.iter().map(|message| version.invalid(message)));
    for (member, max) in [
        ("groupPriorityMinimum", GROUP_PRIORITY_MAX),
        ("versionPriority", VERSION_PRIORITY_MAX),
    ] {
        let place = spec.member(member);
        let priority = place.value.as_i64().unwrap_or_default();
        if priority <= 0 || priority > max {
            let detail = format!("must be positive and less than {max}");
            errors.push(place.invalid_as(&json!(priority), &detail));
        }
    }
    let is_insecure = spec.member("insecureSkipTLSVerify");
    let (certificates, service) = (spec.member("caBundle"), spec.member("service"));
    let has_certificates = !certificates.text().is_empty();
    let skips = is_insecure.value == &Value::Bool(true);
    if !service.is_present() {
        if has_certificates {
            let size = format!("{} bytes", decoded_length(certificates.text()));
            let detail = "local APIServices may not have a caBundle";
            errors.push(certificates.invalid_as(&json!(size), detail));
        }
        if skips {
            errors
                .push(is_insecure.invalid("local APIServices may not have insecureSkipTLSVerify"));
        }
        return;
    }
    for member in ["namespace", "name"] {
        let place = service.member(member);
        if place.text().is_empty() {
            errors.push(place.required(""));
        }
    }
    let port = service.member("port");
    if !(1..=65535).contains(&port.value.as_i64().unwrap_or_default()) {
        errors.push(port.invalid("port is not valid: must be between 1 and 65535, inclusive"));
    }
    if skips && has_certificates {
        errors.push(is_insecure.invalid("may not be true if caBundle is present"));
    }
}

/// Returns the number of bytes that a text in base64 encodes.
fn decoded_length(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}
