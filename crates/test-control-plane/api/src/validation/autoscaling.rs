//! Rules of autoscalers.

use super::engine::{Errors, Place};
use super::resource_names::{self, NamedFor};
use crate::members::{list_at, text, text_at};

/// The sources of a metric with their blocks, in the order of errors.
const SOURCES: [(&str, &str); 5] = [
    ("object", "ObjectMetricSource"),
    ("external", "ExternalMetricSource"),
    ("pods", "PodsMetricSource"),
    ("resource", "ResourceMetricSource"),
    ("containerResource", "ContainerResourceMetricSource"),
];

/// Returns the error of a version, which may have to have a group.
///
/// Upstream: `ValidateAPIVersion`.
fn version_error(version: &str, needs_group: bool) -> Option<String> {
    let slashes = version.matches('/').count();
    let is_empty = version.is_empty() || version == "/";
    if slashes > 1 {
        return Some(format!("unexpected GroupVersion string: {version}"));
    }
    let has_group = !is_empty && slashes == 1 && !version.starts_with('/');
    let error = (needs_group && !has_group).then_some("apiVersion must specify API group");
    error.map(str::to_owned)
}

/// Checks the version of the scaled object, unless the stored autoscaler has it.
pub(super) fn target_version(version: &Place<'_>, errors: &mut Errors) {
    let Some(target) = version.up() else { return };
    let target = target.member("scaleTargetRef");
    let same = |member: &str| {
        target
            .old
            .is_some_and(|old| text(old, member) == target.text_of(member))
    };
    if same("apiVersion") && same("kind") {
        return;
    }
    let needs_group = !target.has("kind", "ReplicationController");
    version.invalid_for(version_error(version.text(), needs_group), errors);
}

/// Checks the version of a described object, unless a stored one is invalid.
pub(super) fn described_version(version: &Place<'_>, errors: &mut Errors) {
    let metrics = version.context.old.map(|old| list_at(old, "/spec/metrics"));
    let was_invalid = metrics.into_iter().flatten().any(|metric| {
        let version = text_at(metric, "/object/describedObject/apiVersion");
        text(metric, "type") == "Object" && version_error(version, false).is_some()
    });
    if !was_invalid {
        version.invalid_for(version_error(version.text(), false), errors);
    }
}

/// Upstream: `validateMetricSpec`.
pub(super) fn metric(metric: &Place<'_>, errors: &mut Errors) {
    metric.check("MetricSpec", errors);
    let present = SOURCES
        .iter()
        .filter(|(member, _)| metric.member(member).is_present());
    let present: Vec<&(&str, &str)> = present.collect();
    if let Some((member, block)) = present.first() {
        metric.member(member).check(block, errors);
    }
    metric.check("MetricSpec/sources", errors);
    let kind = metric.text_of("type");
    for (member, _) in present.iter().filter(|_| present.len() > 1) {
        if !member.eq_ignore_ascii_case(kind) {
            let detail = "must populate the given metric source only";
            errors.push(metric.member(member).forbidden(detail));
        }
    }
}

pub(super) fn zero_replicas(metrics: &Place<'_>, errors: &mut Errors) {
    let mut kinds = metrics.values().map(|metric| metric.text_of("type"));
    if !kinds.any(|kind| matches!(kind, "Object" | "External")) {
        let detail = "must specify at least one Object or External metric to support scaling to \
                      zero replicas";
        errors.push(metrics.forbidden(detail));
    }
}

pub(super) fn container_resource_name(name: &Place<'_>, errors: &mut Errors) {
    resource_names::validate(name.text(), NamedFor::Containers, &name.path(), errors);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::validation::tests::fields;

    #[test]
    fn versions_may_need_a_group() {
        assert_eq!(version_error("apps/v1", true), None);
        assert_eq!(version_error("v1", false), None);
        for version in ["", "v1", "/v1", "/", "a/b/c"] {
            assert!(version_error(version, true).is_some(), "{version}");
        }
    }

    #[test]
    fn metrics_have_the_source_of_their_type() {
        let of = |value: Value| fields(metric, &value);
        assert_eq!(of(json!({"type": "Pods"})), ["x.pods"]);
        let both = json!({"type": "Pods", "pods": {}, "resource": {}});
        let found = of(both);
        assert!(found.contains(&"x.resource".to_owned()), "{found:?}");
        assert!(!found.contains(&"x.pods".to_owned()), "{found:?}");
    }
}
