//! Rules of projected volumes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{file, items, local_path};
use crate::status::FieldError;
use crate::validation::pod_template::{Errors, list, number, required, text};

/// Minimum lifetime of a token, in seconds.
const EXPIRATION_MIN: i64 = 10 * 60;

/// Maximum lifetime of a token, in seconds.
const EXPIRATION_MAX: i64 = 1 << 32;

/// Upstream: `validateProjectionSources`.
pub(super) fn validate(volume: &Value, path: &str, errors: &mut Errors) {
    let mut taken = BTreeSet::new();
    for (i, source) in list(volume, "sources").enumerate() {
        let place = format!("{path}.sources[{i}]");
        let members = source.as_object().into_iter().flatten();
        let found: Vec<(&String, &Value)> = members.filter(|(_, found)| !found.is_null()).collect();
        for (member, found) in &found {
            let place = format!("{place}.{member}");
            match member.as_str() {
                "secret" | "configMap" => {
                    required(found, "name", &place, errors);
                    items(found, member, &place, errors);
                }
                "downwardAPI" => list(found, "items").for_each(|item| file(item, &place, errors)),
                "serviceAccountToken" => token(found, path, &place, errors),
                _ => {}
            }
            for item in list(found, "items") {
                let target = text(item, "path");
                if !target.is_empty() && !taken.insert(target) {
                    let shown = match member.as_str() {
                        "downwardAPI" => target,
                        _ => text(found, "name"),
                    };
                    let detail = "conflicting duplicate paths";
                    errors.push(FieldError::invalid(path, &json!(shown), detail));
                }
            }
        }
        if found.len() > 1 {
            let detail = "may not specify more than 1 volume type";
            errors.push(FieldError::forbidden(place, detail));
        }
    }
}

/// Validates a token of the pod's service account. Path errors name the volume, not the source.
fn token(source: &Value, volume: &str, path: &str, errors: &mut Errors) {
    let seconds = number(source, "expirationSeconds").unwrap_or(0);
    let mut refuse = |why| {
        let field = format!("{path}.expirationSeconds");
        errors.push(FieldError::invalid(field, &json!(seconds), why));
    };
    if seconds < EXPIRATION_MIN {
        refuse("may not specify a duration less than 10 minutes");
    }
    if seconds > EXPIRATION_MAX {
        refuse("may not specify a duration larger than 2^32 seconds");
    }
    required(source, "path", volume, errors);
    local_path(text(source, "path"), &format!("{volume}.path"), errors);
}
