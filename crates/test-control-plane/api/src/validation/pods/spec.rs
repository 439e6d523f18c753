//! Rules between the fields of a pod's spec, and of templates.

use serde_json::{Value, json};

use crate::go::names;
use crate::members::list;
use crate::status::FieldError;
use crate::validation::engine::{Context, Errors, Place, Pod};

/// Maximum length of all search paths, in bytes.
const SEARCH_LENGTH_MAX: usize = 2048;

/// The lists of containers in a pod, in the order of visits.
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Returns all containers of a pod.
pub(super) fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    LISTS.iter().flat_map(move |member| list(spec, member))
}

/// Calls a function for each container of a pod.
pub(super) fn visit_containers(spec: &Place<'_>, visit: &mut dyn FnMut(&Place<'_>)) {
    for member in LISTS {
        spec.member(member)
            .elements()
            .for_each(|container| visit(&container));
    }
}

/// Checks a pod template.
pub(in crate::validation) fn template(template: &Place<'_>, errors: &mut Errors) {
    template_with(template, &[], false, errors);
}

/// Checks a pod template whose volumes claims may replace, and whose names the controller may set.
pub(in crate::validation) fn template_with(
    template: &Place<'_>,
    claims: &[&str],
    is_named: bool,
    errors: &mut Errors,
) {
    check_template(template, "PodTemplateSpec", claims, is_named, errors);
}

/// Checks the metadata of a pod template.
pub(in crate::validation) fn template_metadata(template: &Place<'_>, errors: &mut Errors) {
    check_template(template, "PodTemplateSpec/metadata", &[], false, errors);
}

fn check_template(
    template: &Place<'_>,
    block: &str,
    claims: &[&str],
    is_named: bool,
    errors: &mut Errors,
) {
    let [spec, metadata] = ["spec", "metadata"].map(|member| template.member(member));
    let pod = Pod {
        spec: spec.value,
        old: spec.old,
        metadata: metadata.value,
        is_whole: false,
        claims,
        is_named,
    };
    let context = Context {
        pod: Some(pod),
        ..*template.context
    };
    template.within(&context).check(block, errors);
}

/// Upstream: `validatePodResourceClaims`.
pub(in crate::validation) fn resource_claims(claims: &Place<'_>, errors: &mut Errors) {
    let mirror = claims
        .context
        .pod
        .filter(|pod| pod.is_whole)
        .and_then(|pod| {
            let annotations = pod.metadata.get("annotations")?;
            annotations.get("kubernetes.io/config.mirror")
        });
    if mirror.is_none() {
        claims.check("PodSpec/claims", errors);
        return;
    }
    for _ in claims.elements() {
        let detail = "static pods do not support resource claims";
        errors.push(FieldError::forbidden("[]", detail));
    }
}

/// Upstream: `validatePodDNSConfig`.
pub(in crate::validation) fn dns_of_none(spec: &Place<'_>, errors: &mut Errors) {
    let config = spec.member("dnsConfig");
    if spec.has("dnsPolicy", "None") {
        let servers = config.member("nameservers");
        if !config.is_present() {
            let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
            errors.push(config.required(detail));
            return;
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(servers.required(detail));
            return;
        }
    }
    if config.is_present() {
        config.check("PodDNSConfig", errors);
    }
}

pub(in crate::validation) fn long_search_paths(paths: &Place<'_>, errors: &mut Errors) {
    if paths.texts().join(" ").len() > SEARCH_LENGTH_MAX {
        let detail = format!(
            "must not have more than {SEARCH_LENGTH_MAX} characters (including spaces) in the \
             search list"
        );
        errors.push(paths.invalid(&detail));
    }
}

pub(in crate::validation) fn search_domain(domain: &Place<'_>, errors: &mut Errors) {
    if domain.text() == "." {
        return;
    }
    let trimmed = json!(domain.text().strip_suffix('.').unwrap_or(domain.text()));
    let place = domain.instead(&trimmed);
    place.invalid_for(names::search_domain(place.text()), errors);
}
