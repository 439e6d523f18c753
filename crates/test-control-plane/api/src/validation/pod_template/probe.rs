//! Rules of probes and lifecycle hooks.

use serde_json::{Value, json};

use super::container::port_number;
use super::{Errors, list, number, one_of, required, text};
use crate::validation::{FieldError, at, names, not_negative};

const SCHEMES: [&str; 2] = ["HTTP", "HTTPS"];

const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];

/// Upstream: `validateLifecycle`.
pub(super) fn lifecycle(container: &Value, path: &str, errors: &mut Errors) {
    for member in ["postStart", "preStop"] {
        if let Some(action) = at(container, &format!("/lifecycle/{member}")) {
            handler(action, &format!("{path}.lifecycle.{member}"), errors);
        }
    }
}

/// Upstream: `validateLivenessProbe`, `validateReadinessProbe`, `validateStartupProbe`.
pub(super) fn probes(container: &Value, path: &str, errors: &mut Errors) {
    for member in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(found) = at(container, &format!("/{member}")) else {
            continue;
        };
        let path = format!("{path}.{member}");
        probe(found, &path, errors);
        let successes = number(found, "successThreshold");
        let grace = at(found, "/terminationGracePeriodSeconds");
        if member == "readinessProbe" {
            if let Some(grace) = grace {
                let field = format!("{path}.terminationGracePeriodSeconds");
                let detail = "must not be set for readinessProbes";
                errors.push(FieldError::invalid(field, grace, detail));
            }
        } else if let Some(successes) = successes.filter(|count| *count != 1) {
            let field = format!("{path}.successThreshold");
            errors.push(FieldError::invalid(field, &json!(successes), "must be 1"));
        }
    }
}

fn probe(found: &Value, path: &str, errors: &mut Errors) {
    handler(found, path, errors);
    for member in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        not_negative(
            found,
            &format!("/{member}"),
            &format!("{path}.{member}"),
            errors,
        );
    }
    let member = "terminationGracePeriodSeconds";
    if let Some(seconds) = number(found, member).filter(|seconds| *seconds <= 0) {
        let field = format!("{path}.{member}");
        errors.push(FieldError::invalid(
            field,
            &json!(seconds),
            "must be greater than 0",
        ));
    }
}

/// Upstream: `validateHandler`.
fn handler(found: &Value, path: &str, errors: &mut Errors) {
    let given: Vec<&str> = HANDLERS
        .into_iter()
        .filter(|member| at(found, &format!("/{member}")).is_some())
        .collect();
    for (i, member) in given.iter().enumerate() {
        let field = format!("{path}.{member}");
        if i > 0 {
            let detail = "may not specify more than 1 handler type";
            errors.push(FieldError::forbidden(field, detail));
            continue;
        }
        let action = &found[*member];
        match *member {
            "exec" if list(action, "command").next().is_none() => {
                errors.push(FieldError::required(format!("{field}.command"), ""));
            }
            "httpGet" => http_get(action, &field, errors),
            "tcpSocket" => port(action, &field, errors),
            "grpc" => {
                let number = number(action, "port").unwrap_or(0);
                port_number(number, &format!("{field}.port"), errors);
            }
            _ => {}
        }
    }
    if given.is_empty() {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
}

fn http_get(action: &Value, path: &str, errors: &mut Errors) {
    required(action, "path", path, errors);
    port(action, path, errors);
    one_of(action, "scheme", &SCHEMES, path, errors);
}

/// Validates the number or name of a port.
///
/// Upstream: `ValidatePortNumOrName`.
fn port(action: &Value, path: &str, errors: &mut Errors) {
    let field = format!("{path}.port");
    if action.get("port").is_some_and(Value::is_string) {
        let name = text(action, "port");
        for message in names::port_name(name) {
            errors.push(FieldError::invalid(field.as_str(), &json!(name), message));
        }
        return;
    }
    port_number(number(action, "port").unwrap_or(0), &field, errors);
}
