//! `SubjectAccessReview` and its variants: access checks for a user or the sender.

use std::collections::BTreeMap;

use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::status::{ApiError, ApiResult, FieldError};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::access::authorize::decide;
use crate::auth::attributes::{Attributes, Resource, Subject};
use crate::auth::identity::Identity;
use crate::state::Access;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    resource_attributes: Option<ResourceAttributes>,
    non_resource_attributes: Option<PathAttributes>,
    user: String,
    groups: Option<Vec<String>>,
    uid: String,
    extra: Option<BTreeMap<String, Vec<String>>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceAttributes {
    namespace: String,
    verb: String,
    group: String,
    resource: String,
    subresource: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PathAttributes {
    path: String,
    verb: String,
}

impl Spec {
    fn of(draft: &Draft) -> Self {
        let spec = draft.value.get("spec").cloned().unwrap_or_default();
        // The decoder has checked the types.
        serde_json::from_value(spec).unwrap_or_default()
    }

    /// Returns the reviewed user.
    fn subject(&self) -> Identity {
        Identity {
            name: self.user.clone(),
            uid: self.uid.clone(),
            groups: self.groups.clone().unwrap_or_default(),
            extra: self.extra.clone().unwrap_or_default(),
        }
    }

    /// Returns the reviewed access.
    fn attributes(&self) -> Attributes<'_> {
        if let Some(wanted) = &self.resource_attributes {
            let resource = Resource {
                group: wanted.group.as_str().into(),
                plural: wanted.resource.as_str().into(),
                subresource: wanted.subresource.as_str().into(),
                namespace: wanted.namespace.as_str().into(),
                name: wanted.name.as_str().into(),
            };
            return Attributes::resource(wanted.verb.as_str(), resource);
        }
        let wanted = self.non_resource_attributes.as_ref();
        let (verb, path) = wanted.map_or(("", ""), |w| (w.verb.as_str(), w.path.as_str()));
        Attributes {
            verb: verb.into(),
            subject: Subject::Path(path.into()),
        }
    }
}

/// Reviews the sender's own access.
pub(super) fn review_own_access(
    access: &Access,
    user: &Identity,
    draft: Draft,
) -> ApiResult<Value> {
    let spec = Spec::of(&draft);
    let mut errors = check_attributes(&draft, &spec);
    check_metadata(&draft, "", &mut errors);
    refuse(&errors)?;
    Ok(answered(access, draft, user, &spec.attributes()))
}

/// Reviews a user's access.
pub(super) fn review_access(access: &Access, draft: Draft) -> ApiResult<Value> {
    let spec = Spec::of(&draft);
    let mut errors = check_attributes(&draft, &spec);
    check_subject(&spec, &mut errors);
    check_metadata(&draft, "", &mut errors);
    refuse(&errors)?;
    Ok(answered(access, draft, &spec.subject(), &spec.attributes()))
}

/// Like [`review_access`](Self::review_access), within a namespace.
pub(super) fn review_local_access(
    access: &Access,
    namespace: &str,
    mut draft: Draft,
) -> ApiResult<Value> {
    let named = draft.metadata().namespace();
    if !named.is_empty() && named != namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the \
             request",
        ));
    }
    let metadata = draft.metadata_mut();
    metadata.insert("namespace".to_owned(), json!(namespace));
    let spec = Spec::of(&draft);
    let mut errors = check_attributes(&draft, &spec);
    check_subject(&spec, &mut errors);
    check_metadata(&draft, "namespace", &mut errors);
    if let Some(wanted) = &spec.resource_attributes
        && wanted.namespace != namespace
    {
        errors.push(FieldError::invalid(
            "spec.resourceAttributes.namespace",
            &json!(wanted.namespace),
            "must match metadata.namespace",
        ));
    }
    if spec.non_resource_attributes.is_some() {
        errors.push(FieldError::invalid(
            "spec.nonResourceAttributes",
            &draft.value["spec"]["nonResourceAttributes"],
            "disallowed on this kind of request",
        ));
    }
    refuse(&errors)?;
    Ok(answered(access, draft, &spec.subject(), &spec.attributes()))
}

fn answered(
    access: &Access,
    mut draft: Draft,
    user: &Identity,
    attributes: &Attributes<'_>,
) -> Value {
    let decision = decide(access, user, attributes);
    let mut status = Map::new();
    status.insert("allowed".to_owned(), json!(decision.is_allowed()));
    if !decision.reason().is_empty() {
        status.insert("reason".to_owned(), json!(decision.reason()));
    }
    draft.value["status"] = status.into();
    draft.value
}

fn check_attributes(draft: &Draft, spec: &Spec) -> Vec<FieldError> {
    let paths = &draft.value["spec"]["nonResourceAttributes"];
    let both = (&spec.resource_attributes, &spec.non_resource_attributes);
    let error = match both {
        (Some(_), Some(_)) => FieldError::invalid(
            "spec.nonResourceAttributes",
            paths,
            "cannot be specified in combination with resourceAttributes",
        ),
        (None, None) => FieldError::invalid(
            "spec.resourceAttributes",
            &Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ),
        _ => return Vec::new(),
    };
    vec![error]
}

fn check_subject(spec: &Spec, errors: &mut Vec<FieldError>) {
    if spec.user.is_empty() && spec.groups.as_ref().is_none_or(Vec::is_empty) {
        errors.push(FieldError::invalid(
            "spec.user",
            &json!(spec.user),
            "at least one of user or group must be specified",
        ));
    }
}

/// Checks that the metadata is empty except for the field `allowed`.
fn check_metadata(draft: &Draft, allowed: &str, errors: &mut Vec<FieldError>) {
    let metadata = draft.value.get("metadata").and_then(Value::as_object);
    let mut members = metadata.into_iter().flatten();
    let spare = members.any(|(member, _)| member != allowed && member != "managedFields");
    if spare {
        let detail = match allowed {
            "" => "must be empty".to_owned(),
            allowed => format!("must be empty except for {allowed}"),
        };
        errors.push(FieldError::invalid(
            "metadata",
            &draft.value["metadata"],
            &detail,
        ));
    }
}

/// The kind is missing in the message, as in upstream.
fn refuse(errors: &[FieldError]) -> ApiResult<()> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid_kind(
        "",
        "authorization.k8s.io",
        "",
        errors,
    ))
}
