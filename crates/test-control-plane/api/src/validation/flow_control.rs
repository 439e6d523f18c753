//! Rules of schemas and levels of priority.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::engine::{Errors, Place};
use crate::go::names;

/// The verbs of rules.
const VERBS: [&str; 9] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];

/// An annotation of an older version.
const ZERO_SHARES: &str = "flowcontrol.k8s.io/preserve-zero-concurrency-shares";

/// Maximum number of bits that choose the queues of a request.
const BITS_MAX: i64 = 60;

/// The objects that every server has, with their unchangeable specs. They are immutable.
static MANDATORY: LazyLock<Vec<Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("flow_control.json")).unwrap_or_default());

/// Returns the schemas and levels that every server has.
///
/// Upstream: `internalbootstrap.MandatoryFlowSchemas`, `MandatoryPriorityLevelConfigurations`
pub fn mandatory_flow_control() -> &'static [Value] {
    &MANDATORY
}

/// Rejects another spec of an object that every server has.
pub(super) fn mandatory(spec: &Place<'_>, errors: &mut Errors) {
    let Some(object) = spec.up() else { return };
    let name = object.member("metadata.name");
    let is_same = |mandatory: &&Value| {
        mandatory["metadata"]["name"] == *name.value
            && ["kind", "apiVersion"]
                .iter()
                .all(|it| mandatory[it] == object.value[it])
    };
    let Some(mandatory) = MANDATORY.iter().find(is_same) else {
        return;
    };
    let (mut found, mut wanted) = (spec.value.clone(), mandatory["spec"].clone());
    let name = name.text();
    let mut detail = format!("spec of '{name}' must equal the fixed value");
    if wanted.get("exempt").is_some() {
        found["exempt"] = Value::Null;
        wanted["exempt"] = Value::Null;
        detail =
            format!("spec of '{name}' except the 'spec.exempt' field must equal the fixed value");
    }
    if found != wanted {
        errors.push(spec.invalid(&detail));
    }
}

/// Rejects other elements besides `*`.
pub(super) fn lone_wildcard(list: &Place<'_>, _: &[&str], detail: &str, errors: &mut Errors) {
    if has_wildcard(list) && list.values().count() > 1 {
        errors.push(list.invalid(detail));
    }
}

fn has_wildcard(list: &Place<'_>) -> bool {
    list.values().any(|element| element.text() == "*")
}

pub(super) fn flow_verbs(verbs: &Place<'_>, errors: &mut Errors) {
    let is_known = |verb: Place<'_>| VERBS.contains(&verb.text());
    if !has_wildcard(verbs) && !verbs.values().all(is_known) {
        errors.push(verbs.not_supported(&VERBS));
    }
}

pub(super) fn flow_namespaces(namespaces: &Place<'_>, errors: &mut Errors) {
    for namespace in namespaces.elements().filter(|_| !has_wildcard(namespaces)) {
        let wrong = names::dns_label(namespace.text()).into_iter();
        let intro = "each member of this list must be '*' or a DNS-1123 label; ";
        namespace.invalid_for(wrong.map(|why| format!("{intro}{why}")), errors);
    }
}

/// Upstream: `ValidateNonResourceURLPath`.
pub(super) fn flow_urls(urls: &Place<'_>, errors: &mut Errors) {
    for url in urls.elements().filter(|_| !has_wildcard(urls)) {
        let path = url.text();
        let why = match path {
            "" => "must not be empty",
            "/" => continue,
            _ if !path.starts_with('/') => "must start with slash",
            _ if path.contains(' ') => "must not contain white-space",
            _ if path.contains("//") => "must not contain double slash",
            _ => match path.matches('*').count() {
                0 => continue,
                1 if path.ends_with("/*") => continue,
                _ => "wildcard can only do suffix matching",
            },
        };
        url.invalid_for([why], errors);
    }
}

pub(super) fn zero_shares(annotations: &Place<'_>, errors: &mut Errors) {
    if annotations.value.get(ZERO_SHARES).is_some() {
        errors.push(annotations.forbidden(&format!("annotation '{ZERO_SHARES}' is forbidden")));
    }
}

/// Rejects more queues for a request than there are, or than a hash can choose.
pub(super) fn hand_size(size: &Place<'_>, errors: &mut Errors) {
    let queues = size
        .up()
        .map_or(0, |queuing| queuing.member("queues").number());
    let hand = size.number();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "both numbers are 32-bit integers"
    )]
    let bits = ((queues as f64).log2() * hand as f64).ceil() as i64;
    let detail = if hand <= 0 {
        return;
    } else if hand > queues {
        format!("should not be greater than queues ({queues})")
    } else if bits > BITS_MAX {
        format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater \
             than {BITS_MAX}"
        )
    } else {
        return;
    };
    errors.push(size.invalid_as(&json!(hand), &detail));
}
