//! A request as a question to policies: if they apply to it, and the values that their expressions
//! read.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use kube_test_control_plane_api::admission::policies::{Authorizer, Inputs};
use kube_test_control_plane_api::admission::webhooks::Webhook;
use kube_test_control_plane_api::admission::{Attributes, Constraints, Equivalent};
use kube_test_control_plane_api::kinds::Kind;
use kube_test_control_plane_api::status::ApiResult;
use serde_json::Value;

use super::authorizer::RequestAuthorizer;
use super::params;
use crate::admission::policy_index::Binding;
use crate::review::form::Form;
use crate::review::input::{Asked, Objects};
use crate::route::ResourceRequest;
use crate::state::{Access, Reads};

/// The resources that no policy reviews: those of policies, and queries about users.
const EXCLUDED: [(&str, &[&str]); 3] = [
    (
        "admissionregistration.k8s.io",
        &[
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
        ],
    ),
    (
        "authentication.k8s.io",
        &["selfsubjectreviews", "tokenreviews"],
    ),
    (
        "authorization.k8s.io",
        &[
            "localsubjectaccessreviews",
            "selfsubjectaccessreviews",
            "selfsubjectrulesreviews",
            "subjectaccessreviews",
        ],
    ),
];

/// Returns true for the kinds that no policy reviews.
pub(super) fn is_excluded(kind: &Kind) -> bool {
    let mut excluded = EXCLUDED.iter();
    excluded.any(|(group, names)| kind.group == *group && names.contains(&&*kind.plural))
}

/// Returns the name of the object for messages.
///
/// Upstream: `extractResourceName`
pub(super) fn shown_name<'a>(name: &'a str, objects: &'a Objects<'_>) -> &'a str {
    if !name.is_empty() {
        return name;
    }
    let of = |member: &str| {
        let object = objects.object.as_ref();
        let found = object.and_then(|object| object["metadata"][member].as_str());
        found.filter(|text| !text.is_empty())
    };
    of("name")
        .or_else(|| of("generateName"))
        .unwrap_or("Unknown")
}

/// A request as a question to policies.
pub(super) struct Question<'a> {
    reads: &'a Reads,
    request: &'a ResourceRequest,
    asked: Asked<'a>,
    /// The values for the objects in the versions so far.
    inputs: RefCell<Vec<(Equivalent, Rc<Inputs>)>>,
    authorizer: Arc<dyn Authorizer>,
}

/// The form in which a request meets constraints, and the kind of the policy's parameters.
pub(super) type Found = (Equivalent, Option<Arc<Kind>>);

impl<'a> Question<'a> {
    pub(super) fn new(
        access: &'a Arc<Access>,
        request: &'a ResourceRequest,
        name: &'a str,
        objects: &'a Objects<'_>,
    ) -> Self {
        let user = request.user.as_ref().unwrap_or(&access.admin);
        Self {
            reads: &access.reads,
            request,
            asked: Asked::new(access, request, name, objects),
            inputs: RefCell::default(),
            authorizer: Arc::new(RequestAuthorizer {
                access: Arc::clone(access),
                user: Arc::clone(user),
            }),
        }
    }

    /// Returns how the request meets the constraints of a policy, if it does.
    ///
    /// # Errors
    ///
    /// The policy can't be used; the text is upstream's.
    pub(super) fn matches(
        &self,
        constraints: &Constraints,
        param_kind: Option<&(String, String)>,
    ) -> Result<Option<Found>, String> {
        if !constraints.names_resource(&self.request.kind.plural) {
            return Ok(None);
        }
        let Some(found) = self.meets(constraints)? else {
            return Ok(None);
        };
        let kind = param_kind.map(|kind| params::param_kind(self.reads, kind));
        Ok(Some((found, kind.transpose()?)))
    }

    fn meets(&self, constraints: &Constraints) -> Result<Option<Equivalent>, String> {
        let found = self.asked.meets(constraints);
        found.map_err(|error| error.message)
    }

    /// Returns the parameters of a binding; none if the request doesn't meet its constraints.
    ///
    /// # Errors
    ///
    /// The binding can't be used; the text is upstream's.
    pub(super) fn params(
        &self,
        binding: &Binding,
        kind: Option<&Arc<Kind>>,
    ) -> Result<Vec<Value>, String> {
        if let Some(constraints) = &binding.constraints
            && self.meets(constraints)?.is_none()
        {
            return Ok(Vec::new());
        }
        let namespace = self.asked.attributes.namespace;
        let at = self.request.admission_revision;
        params::collect(self.reads, kind, binding.params.as_ref(), (namespace, at))
    }

    /// Returns the values that expressions read, for objects in the matched version. Policies share
    /// them.
    pub(super) fn inputs(&self, matched: &Equivalent) -> ApiResult<Rc<Inputs>> {
        let mut known = self.inputs.borrow_mut();
        if let Some((_, inputs)) = known.iter().find(|(known, _)| known == matched) {
            return Ok(Rc::clone(inputs));
        }
        let inputs = Rc::new(self.new_inputs(matched)?);
        known.push((matched.clone(), Rc::clone(&inputs)));
        Ok(inputs)
    }

    fn new_inputs(&self, matched: &Equivalent) -> ApiResult<Inputs> {
        let attributes = &self.asked.attributes;
        let is_namespace = attributes.kind.kind == "Namespace" && attributes.kind.group.is_empty();
        let namespace = if attributes.namespace.is_empty() || is_namespace {
            None
        } else {
            Some(self.asked.around.object()?)
        };
        let form = Form::matched(self.reads, self.request, matched);
        let object = attributes.object.map(|object| form.of(object));
        let old = attributes.old_object.map(|object| form.of(object));
        let attributes = Attributes {
            object: object.as_deref(),
            old_object: old.as_deref(),
            ..attributes.clone()
        };
        Ok(Inputs::new(
            &attributes,
            &matched.kind,
            &matched.resource,
            namespace.as_ref(),
            &self.authorizer,
        ))
    }
}

/// Reports whether a request meets the conditions of a webhook, with objects in the matched version.
///
/// # Errors
///
/// A condition fails; the text is upstream's.
pub(in crate::review) fn meets_conditions(
    access: &Arc<Access>,
    request: &ResourceRequest,
    webhook: &Webhook,
    attributes: &Attributes<'_>,
    matched: &Equivalent,
) -> Result<bool, String> {
    let user = request.user.as_ref().unwrap_or(&access.admin);
    let authorizer: Arc<dyn Authorizer> = Arc::new(RequestAuthorizer {
        access: Arc::clone(access),
        user: Arc::clone(user),
    });
    let (kind, resource) = (&matched.kind, &matched.resource);
    let inputs = Inputs::new(attributes, kind, resource, None, &authorizer);
    webhook.meets_conditions(&inputs)
}
