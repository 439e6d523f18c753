//! Rules of a pod's DNS configuration.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::{Errors, IP_MESSAGE, list, required};
use crate::validation::{FieldError, at, names};

/// Upstream: `validatePodDNSConfig`, but for its limits of numbers and lengths.
pub(super) fn validate(spec: &Value, path: &str, errors: &mut Errors) {
    let Some(config) = at(spec, "/dnsConfig") else {
        return;
    };
    let path = format!("{path}.dnsConfig");
    for (i, server) in list(config, "nameservers").enumerate() {
        let address = server.as_str().unwrap_or_default();
        if address.parse::<IpAddr>().is_err() {
            let field = format!("{path}.nameservers[{i}]");
            errors.push(FieldError::invalid(field, &json!(address), IP_MESSAGE));
        }
    }
    for (i, search) in list(config, "searches").enumerate() {
        let search = search.as_str().unwrap_or_default();
        if search == "." {
            continue;
        }
        // Underscores are allowed because some resolvers need them.
        let name = search.strip_suffix('.').unwrap_or(search).replace('_', "0");
        for message in names::dns_subdomain(&name) {
            let field = format!("{path}.searches[{i}]");
            errors.push(FieldError::invalid(field, &json!(search), message));
        }
    }
    for (i, option) in list(config, "options").enumerate() {
        required(option, "name", &format!("{path}.options[{i}]"), errors);
    }
}
