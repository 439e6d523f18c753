//! Configurations of admission webhooks.
//!
//! Upstream: `validateValidatingWebhook` and `validateMutatingWebhook` of
//! `pkg/apis/admissionregistration/validation`, and `pkg/util/webhook` of the API server

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::engine::{Errors, Place};
use super::{admission, policies};
use crate::go::names;
use crate::go::url::Url;

/// The effects that webhooks may have besides their response.
const NO_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];

/// The versions of reviews.
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

/// The ending of messages about URLs.
const FORM: &str = "; desired format: https://host[/path]";

/// Violations of a stored configuration, which may stay.
#[derive(Clone, Copy, Debug)]
struct Leniency {
    /// The allowed side effects.
    effects: &'static [&'static str],
    has_unknown_reviews: bool,
    has_equal_names: bool,
    has_same_conditions: bool,
}

impl Leniency {
    fn of(list: &Place<'_>) -> Self {
        let hooks = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let old = list.old.map(hooks);
        let new = hooks(list.value);
        let any = |lacks: &dyn Fn(&Value) -> bool| old.iter().flatten().any(lacks);
        let text = |hook: &Value, name: &str| hook[name].as_str().unwrap_or_default().to_owned();
        let reviews = |hook: &Value| {
            let versions = hook["admissionReviewVersions"].as_array();
            let mut versions = versions.into_iter().flatten().filter_map(Value::as_str);
            versions.any(|version| REVIEWS.contains(&version))
        };
        let names: Vec<String> = old
            .iter()
            .flatten()
            .map(|hook| text(hook, "name"))
            .collect();
        let conditions = |hook: &Value| hook["matchConditions"].clone();
        let are_same = |old: &Vec<Value>| {
            let has_other = old.len() != new.len();
            !has_other
                && old
                    .iter()
                    .zip(&new)
                    .all(|(old, new)| conditions(old) == conditions(new))
        };
        let has_effects = any(&|hook| !NO_EFFECTS.contains(&text(hook, "sideEffects").as_str()));
        Self {
            effects: if has_effects { &EFFECTS } else { &NO_EFFECTS },
            has_unknown_reviews: any(&|hook| !reviews(hook)),
            has_equal_names: names.iter().collect::<BTreeSet<_>>().len() < names.len(),
            has_same_conditions: old.as_ref().is_some_and(are_same),
        }
    }
}

/// Checks the webhooks of a validating configuration.
pub(super) fn validating_webhooks(list: &Place<'_>, errors: &mut Errors) {
    webhooks(list, false, errors);
}

/// Checks the webhooks of a mutating configuration.
pub(super) fn mutating_webhooks(list: &Place<'_>, errors: &mut Errors) {
    webhooks(list, true, errors);
}

fn webhooks(list: &Place<'_>, is_mutating: bool, errors: &mut Errors) {
    let leniency = Leniency::of(list);
    let mut known = BTreeSet::new();
    for hook in list.elements() {
        webhook(&hook, leniency, is_mutating, errors);
        review_versions(&hook.member("admissionReviewVersions"), leniency, errors);
        let name = hook.member("name");
        let is_new = name.is_empty() || known.insert(name.text().to_owned());
        if !is_new && !leniency.has_equal_names {
            errors.push(name.duplicate());
        }
    }
}

fn webhook(hook: &Place<'_>, leniency: Leniency, is_mutating: bool, errors: &mut Errors) {
    full_name(&hook.member("name"), errors);
    for rule in hook.member("rules").elements() {
        admission::rule_with_operations(&rule, errors);
    }
    one_of(&hook.member("failurePolicy"), &["Fail", "Ignore"], errors);
    one_of(
        &hook.member("matchPolicy"),
        &["Equivalent", "Exact"],
        errors,
    );
    let effects = hook.member("sideEffects");
    let allowed = leniency.effects;
    if !effects.is_present() {
        errors.push(effects.required(&format!("must specify one of {}", allowed.join(", "))));
    }
    one_of(&effects, allowed, errors);
    let timeout = hook.member("timeoutSeconds");
    if timeout
        .value
        .as_i64()
        .is_some_and(|it| !(1..=30).contains(&it))
    {
        errors.push(timeout.invalid("the timeout value must be between 1 and 30 seconds"));
    }
    for selector in ["namespaceSelector", "objectSelector"] {
        let selector = hook.member(selector);
        if selector.is_present() {
            selector.check("LabelSelector", errors);
        }
    }
    if is_mutating {
        one_of(
            &hook.member("reinvocationPolicy"),
            &["IfNeeded", "Never"],
            errors,
        );
    }
    client(&hook.member("clientConfig"), errors);
    if !leniency.has_same_conditions {
        policies::webhook_conditions(&hook.member("matchConditions"), errors);
    }
}

fn one_of(place: &Place<'_>, allowed: &[&str], errors: &mut Errors) {
    if place.is_present() && !allowed.contains(&place.text()) {
        errors.push(place.not_supported(allowed));
    }
}

/// Upstream: `IsFullyQualifiedName`
fn full_name(name: &Place<'_>, errors: &mut Errors) {
    let wrong = names::dns_subdomain(name.text());
    if name.is_empty() {
        errors.push(name.required(""));
    } else if !wrong.is_empty() {
        errors.push(name.invalid(&wrong.join(",")));
    } else if name.text().split('.').count() < 3 {
        errors.push(
            name.invalid("should be a domain with at least three segments separated by dots"),
        );
    }
}

/// Upstream: `validateAdmissionReviewVersions`
fn review_versions(list: &Place<'_>, leniency: Leniency, errors: &mut Errors) {
    if list.is_empty() {
        errors.push(list.required(&format!("must specify one of {}", REVIEWS.join(", "))));
        return;
    }
    let mut known = BTreeSet::new();
    for version in list.elements() {
        if known.insert(version.text().to_owned()) {
            version.invalid_for(names::letter_label(version.text()), errors);
        } else {
            errors.push(version.invalid("duplicate version"));
        }
    }
    let is_reviewed = REVIEWS.iter().any(|version| known.contains(*version));
    if !is_reviewed && !leniency.has_unknown_reviews {
        let detail = format!("must include at least one of {}", REVIEWS.join(", "));
        errors.push(list.invalid_as(list.value, &detail));
    }
}

pub(super) fn client(client: &Place<'_>, errors: &mut Errors) {
    let (url, service) = (client.member("url"), client.member("service"));
    match (url.is_present(), service.is_present()) {
        (true, false) => webhook_url(&url, errors),
        (false, true) => webhook_service(&service, errors),
        _ => errors.push(client.required("exactly one of url or service is required")),
    }
}

/// Upstream: `ValidateWebhookURL`
fn webhook_url(place: &Place<'_>, errors: &mut Errors) {
    let url = match Url::parse(place.text()) {
        Ok(url) => url,
        Err(error) => {
            errors.push(place.required(&format!("url must be a valid URL: {error}{FORM}")));
            return;
        }
    };
    let mut wrong = |part: &str, detail: &str| {
        errors.push(place.invalid_as(&json!(part), detail));
    };
    if url.scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        wrong(&url.scheme, &detail);
    }
    if url.host.is_empty() {
        wrong("", &format!("host must be specified{FORM}"));
    }
    if let Some(user) = url.user() {
        wrong(user, "user information is not permitted in the URL");
    }
    if !url.fragment().is_empty() {
        wrong(url.fragment(), "fragments are not permitted in the URL");
    }
    if !url.raw_query().is_empty() {
        wrong(
            url.raw_query(),
            "query parameters are not permitted in the URL",
        );
    }
}

/// Upstream: `ValidateWebhookService`
fn webhook_service(service: &Place<'_>, errors: &mut Errors) {
    // Upstream confuses the two.
    for (checked, shown) in [("namespace", "name"), ("name", "namespace")] {
        if service.member(checked).is_empty() {
            errors.push(service.member(shown).required(""));
        }
    }
    let port = service.member("port");
    if port
        .value
        .as_i64()
        .is_some_and(|port| !(1..=65535).contains(&port))
    {
        errors.push(port.invalid("port is not valid: must be between 1 and 65535, inclusive"));
    }
    let path = service.member("path");
    let text = path.text();
    match text {
        "" | "/" => return,
        "//" => {
            errors.push(path.invalid("segment[0] may not be empty"));
            return;
        }
        _ => {}
    }
    if !text.starts_with('/') {
        errors.push(path.invalid("must start with a '/'"));
    }
    let rest = text.get(1..).unwrap_or_default();
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    for (index, segment) in rest.split('/').enumerate() {
        if segment.is_empty() {
            errors.push(path.invalid(&format!("segment[{index}] may not be empty")));
            continue;
        }
        for wrong in names::dns_subdomain(segment) {
            errors.push(path.invalid(&format!("segment[{index}]: {wrong}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::tests::fields;

    fn hook(client: &Value) -> Value {
        json!([{
            "name": "a.example.com", "clientConfig": client, "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }])
    }

    #[test]
    fn names_have_three_segments() {
        for (name, expected) in [
            ("", &["x"][..]),
            ("a.b", &["x"]),
            ("A.b.c", &["x"]),
            ("a.b.c", &[]),
        ] {
            assert_eq!(fields(full_name, &json!(name)), expected, "{name}");
        }
    }

    #[test]
    fn clients_have_one_target() {
        let at = |client: Value| fields(validating_webhooks, &hook(&client));
        assert_eq!(at(json!({"url": "https://a/x"})), [""; 0]);
        assert_eq!(at(json!({})), ["x[0].clientConfig"]);
        let url = ["x[0].clientConfig.url"; 3];
        assert_eq!(at(json!({"url": "http://u@a/?x"})), url);
        let names = [
            "x[0].clientConfig.service.name",
            "x[0].clientConfig.service.namespace",
        ];
        assert_eq!(at(json!({"service": {}})), names);
        let service = json!({"name": "a", "namespace": "b", "path": "/x//Y/", "port": 0});
        let expected = [
            "x[0].clientConfig.service.port",
            "x[0].clientConfig.service.path",
            "x[0].clientConfig.service.path",
        ];
        assert_eq!(at(json!({"service": service})), expected);
    }

    #[test]
    fn webhooks_name_the_versions_of_reviews() {
        for (versions, expected) in [
            (json!([]), &["x[0].admissionReviewVersions"][..]),
            (json!(["v9"]), &["x[0].admissionReviewVersions"]),
            (json!(["v1", "v1"]), &["x[0].admissionReviewVersions[1]"]),
            (json!(["v9", "v1beta1"]), &[]),
        ] {
            let mut hooks = hook(&json!({"url": "https://a/x"}));
            hooks[0]["admissionReviewVersions"] = versions;
            assert_eq!(fields(mutating_webhooks, &hooks), expected);
        }
    }
}
