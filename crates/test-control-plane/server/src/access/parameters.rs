//! Permission to name parameters in admission policies and their bindings.
//!
//! Upstream: `authz.go` of the packages in `pkg/registry/admissionregistration`

use std::borrow::Cow;

use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::members::text;
use kube_test_control_plane_api::object::{Draft, Key};
use kube_test_control_plane_api::status::FieldError;
use serde_json::Value;

use super::decide;
use crate::auth::attributes::{Attributes, Resource, Subject};
use crate::auth::{Identity, MASTERS};
use crate::route::ResourceRequest;
use crate::state::Access;

/// Checks that the sender of a policy may read all its parameters, and the sender of a binding those
/// that it names; `old` is the stored object.
pub(crate) fn check_parameters(
    access: &Access,
    request: &ResourceRequest,
    new: &Draft,
    old: Option<&Draft>,
) -> Option<FieldError> {
    let storage = &*request.kind.storage;
    if !kinds::is_admission_policy(storage) {
        return None;
    }
    let user = request.user.as_deref();
    let user = user.filter(|user| !user.is_in(MASTERS))?;
    let spec = &new.value["spec"];
    if let Some(policy) = storage.strip_suffix("bindings") {
        return check_reference(access, user, policy, spec);
    }
    let kind = spec.get("paramKind")?;
    if old.is_some_and(|old| old.value["spec"].get("paramKind") == Some(kind)) {
        return None;
    }
    let resource = resource_of(access, Some(kind), "*", "*");
    let detail = format!(
        "user {} must have \"get\" permission on all objects of the referenced paramKind \
         (kind={}, apiVersion={})",
        printed(user),
        text(kind, "kind"),
        text(kind, "apiVersion"),
    );
    let error = FieldError::forbidden("spec.paramKind", &detail);
    (!may_get(access, user, resource)).then_some(error)
}

fn check_reference(
    access: &Access,
    user: &Identity,
    policy: &str,
    spec: &Value,
) -> Option<FieldError> {
    let reference = spec.get("paramRef")?;
    let policies = policy.strip_suffix('y').unwrap_or(policy);
    let policy = kinds::by_storage(&format!("{policies}ies")).and_then(|kind| {
        let key = Key::new(kind, "", text(spec, "policyName"));
        Some(access.reads.store.get(&key)?.value())
    });
    let kind = policy.as_ref().and_then(|it| it.pointer("/spec/paramKind"));
    let (namespace, name) = (text(reference, "namespace"), text(reference, "name"));
    let resource = resource_of(access, kind, namespace, name);
    let detail = format!(
        "user {} does not have \"get\" permission on the object referenced by paramRef",
        printed(user),
    );
    let error = FieldError::forbidden("spec.paramRef", &detail);
    (!may_get(access, user, resource)).then_some(error)
}

/// Returns the resource of a kind of parameters, with wildcards for its unknown parts.
fn resource_of<'a>(
    access: &Access,
    kind: Option<&'a Value>,
    namespace: &'a str,
    name: &'a str,
) -> Resource<'a> {
    let (mut group, mut plural) = ("*", Cow::Borrowed("*"));
    if let Some(kind) = kind {
        let (version, kind) = (text(kind, "apiVersion"), text(kind, "kind"));
        group = version.split_once('/').map_or("", |(group, _)| group);
        let custom = || {
            let kinds = access.reads.custom_kinds();
            kinds.by_kind(version, kind).map(|kind| kind.plural.clone())
        };
        let found = kinds::by_kind(version, kind).map(|kind| kind.plural.clone());
        plural = found.or_else(custom).map_or(plural, Cow::Owned);
    }
    Resource {
        group: Cow::Borrowed(group),
        plural,
        subresource: Cow::Borrowed(""),
        namespace: Cow::Borrowed(namespace),
        name: Cow::Borrowed(name),
    }
}

fn may_get(access: &Access, user: &Identity, resource: Resource<'_>) -> bool {
    let attributes = Attributes {
        verb: Cow::Borrowed("get"),
        subject: Subject::Resource(resource),
    };
    decide(access, user, &attributes).is_allowed()
}

/// Returns a user as Go prints one.
fn printed(user: &Identity) -> String {
    let extra = user.extra.iter();
    let extra: Vec<String> = extra
        .map(|(key, values)| format!("{key}:[{}]", values.join(" ")))
        .collect();
    format!(
        "&{{{} {} [{}] map[{}]}}",
        user.name,
        user.uid,
        user.groups.join(" "),
        extra.join(" "),
    )
}
