//! The changes of a request by `MutatingAdmissionPolicy` objects.
//!
//! Upstream: `policyDispatcher.Dispatch`, and `dispatchInvocations` of the plugin
//! `MutatingAdmissionPolicy`

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use kube_apimachinery::schema::{self, UnknownMembers};
use kube_test_control_plane_api::kinds::{Kind, Subresource, Target, stored};
use kube_test_control_plane_api::managed_fields::merge_unmanaged;
use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::options::FieldValidation;
use kube_test_control_plane_api::patch::JsonPatch;
use kube_test_control_plane_api::policies::{
    Change, Equivalent, FailurePolicy, Inputs, MutatingPolicy,
};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::views;
use serde_json::{Value, json};

use super::input::{Objects, built_in, to_matched};
use super::question::{Question, is_excluded, shown_name};
use crate::admission::policy_index::{Binding, BoundPolicy};
use crate::route::ResourceRequest;
use crate::state::Access;
use crate::write;

/// A policy with a binding and parameters that applies to the request.
struct Invocation {
    policy: Arc<MutatingPolicy>,
    binding: Arc<Binding>,
    params: Value,
    matched: Equivalent,
}

/// A failed policy.
struct Failure {
    policy: FailurePolicy,
    message: String,
    reason: &'static str,
}

/// The changes in progress.
struct Run<'a> {
    access: &'a Arc<Access>,
    request: &'a ResourceRequest,
    name: &'a str,
    objects: Objects<'a>,
    failures: Vec<Failure>,
}

/// Changes the object of a request. Returns true if a policy changed it.
///
/// # Errors
///
/// A policy fails, or changes the object to something else.
pub(super) fn mutate(
    access: &Arc<Access>,
    request: &ResourceRequest,
    name: &str,
    objects: &mut Objects<'_>,
) -> ApiResult<bool> {
    let index = access.reads.policies.index(&access.reads.store);
    if index.mutating.is_empty() || is_excluded(&request.kind) {
        return Ok(false);
    }
    let mut run = Run {
        access,
        request,
        name,
        objects: objects.clone(),
        failures: Vec::new(),
    };
    let invocations = run.invocations(&index.mutating);
    let before = run.objects.object.clone();
    if !invocations.is_empty() {
        run.run_all(&invocations)?;
    }
    let failures: Vec<&Failure> = run
        .failures
        .iter()
        .filter(|failure| failure.policy == FailurePolicy::Fail)
        .collect();
    if let Some(first) = failures.first() {
        return Err(denied(request, name, objects, first, &failures));
    }
    objects.object = run.objects.object;
    Ok(objects.object != before)
}

fn denied(
    request: &ResourceRequest,
    name: &str,
    objects: &Objects<'_>,
    first: &Failure,
    all: &[&Failure],
) -> ApiError {
    let name = shown_name(name, objects);
    let mut error = ApiError::forbidden(&request.kind, name, "");
    error.message.clone_from(&first.message);
    error.reason = first.reason.into();
    if let Some(details) = &mut error.details {
        let causes = all
            .iter()
            .map(|failure| json!({"message": failure.message}));
        details["causes"] = Value::Array(causes.collect());
    }
    error
}

impl Run<'_> {
    /// Returns the policies that apply, with their bindings and parameters.
    fn invocations(&mut self, policies: &[BoundPolicy<MutatingPolicy>]) -> Vec<Invocation> {
        let mut found = Vec::new();
        let mut failures = Vec::new();
        let question = Question::new(self.access, self.request, self.name, &self.objects);
        for bound in policies {
            let policy = &bound.policy;
            let mut fail = |binding: Option<&Binding>, text: &str| {
                let what = if binding.is_some() {
                    "binding"
                } else {
                    "policy"
                };
                let text = format!("failed to configure {what}: {text}");
                failures.push(failure(policy, binding, &text, "Forbidden"));
            };
            let matched = question.matches(&policy.constraints, policy.param_kind.as_ref());
            let (matched, kind) = match matched {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(text) => {
                    fail(None, &text);
                    continue;
                }
            };
            for binding in &bound.bindings {
                match question.params(binding, kind.as_ref()) {
                    Ok(params) => found.extend(params.into_iter().map(|params| Invocation {
                        policy: Arc::clone(policy),
                        binding: Arc::clone(binding),
                        params,
                        matched: matched.clone(),
                    })),
                    Err(text) => fail(Some(binding), &text),
                }
            }
        }
        self.failures.append(&mut failures);
        found
    }

    /// Runs all invocations, then those again that want it after later changes.
    fn run_all(&mut self, invocations: &[Invocation]) -> ApiResult<()> {
        let mut invoked = BTreeSet::new();
        let mut again = BTreeSet::new();
        let mut is_changed = false;
        for (index, invocation) in invocations.iter().enumerate() {
            if self.run(invocation)? {
                is_changed = true;
                again.append(&mut invoked);
            }
            if invocation.policy.is_reinvoked {
                invoked.insert(index);
            }
        }
        if !is_changed || self.is_denied() {
            return Ok(());
        }
        again.append(&mut invoked);
        for index in again {
            if let Some(invocation) = invocations.get(index) {
                self.run(invocation)?;
            }
        }
        Ok(())
    }

    fn is_denied(&self) -> bool {
        let mut failures = self.failures.iter();
        failures.any(|failure| failure.policy == FailurePolicy::Fail)
    }

    /// Makes the changes of an invocation. Returns true if it made any.
    fn run(&mut self, invocation: &Invocation) -> ApiResult<bool> {
        let policy = &invocation.policy;
        let params = Some(&invocation.params);
        let fail = |run: &mut Self, text: &str| {
            let failure = failure(policy, Some(&invocation.binding), text, "Invalid");
            run.failures.push(failure);
        };
        let inputs = self.inputs(invocation)?;
        match policy.matches(&inputs, params) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(text) => {
                fail(self, &text);
                return Ok(false);
            }
        }
        let mut is_changed = false;
        let kind = built_in(&invocation.matched.resource);
        let kind = kind.unwrap_or(&self.request.kind);
        for index in 0..policy.changes() {
            let Some(mut before) = self.objects.object.clone() else {
                break;
            };
            self.to_matched(invocation, &mut before);
            let inputs = self.inputs(invocation)?;
            let change = policy.change(index, &inputs, params);
            let changed = change.and_then(|change| self.changed(kind, &before, &change));
            match changed {
                Ok(value) => {
                    let value = self.decoded(kind, value)?;
                    // As in upstream, a change without an effect counts, too.
                    is_changed = true;
                    self.objects.object = Some(value);
                }
                Err(text) => fail(self, &text),
            }
        }
        Ok(is_changed)
    }

    fn inputs(&self, invocation: &Invocation) -> ApiResult<Rc<Inputs>> {
        let question = Question::new(self.access, self.request, self.name, &self.objects);
        question.inputs(&invocation.matched)
    }

    fn to_matched(&self, invocation: &Invocation, object: &mut Value) {
        let question = Question::new(self.access, self.request, self.name, &self.objects);
        to_matched(&question.attributes, &invocation.matched, object);
    }

    /// Returns the object with a change.
    fn changed(&self, kind: &Kind, before: &Value, change: &Change) -> Result<Value, String> {
        match change {
            Change::Apply(config) => {
                let mut config = config.clone();
                for name in ["apiVersion", "kind"] {
                    config[name] = before[name].clone();
                }
                let applied = self.applied(kind, before, &config);
                applied.map_err(|text| format!("error applying patch: {text}"))
            }
            Change::Patch(operations) => {
                let text = Value::Array(operations.clone()).to_string();
                let patch = JsonPatch::parse(text.as_bytes(), FieldValidation::Ignore);
                let patch = patch.map_err(|error| error.message)?;
                match patch.run(before.to_string().as_bytes()) {
                    Ok(text) => serde_json::from_slice(&text).map_err(|error| error.to_string()),
                    Err(failed) if failed.is_test => Ok(before.clone()),
                    Err(failed) => Err(format!("JSON Patch: {}", failed.text)),
                }
            }
        }
    }

    fn applied(&self, kind: &Kind, before: &Value, config: &Value) -> Result<Value, String> {
        if self.request.requested == Target::Part(Subresource::Scale) {
            return Err(
                "failed to convert patch object to typed object: no corresponding type for \
                 autoscaling/v1, Kind=Scale"
                    .to_owned(),
            );
        }
        let strictness = self.access.reads.behaviour().strictness();
        merge_unmanaged(kind, before, config, strictness)
    }

    /// Returns a changed object in the form of the request, as upstream decodes it, with defaults.
    fn decoded(&self, kind: &Kind, mut value: Value) -> ApiResult<Value> {
        if !value["metadata"].is_object() {
            let why = "the changed object has no metadata, check the mutating admission policies";
            return Err(ApiError::internal_error(why));
        }
        if kind.custom.is_some() {
            value["apiVersion"] = json!(kind.api_version());
            return Ok(value);
        }
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let behaviour = self.access.reads.behaviour();
        let version = behaviour.version.schema();
        let Some(of) = version.type_of_kind(&text("apiVersion"), &text("kind")) else {
            return Ok(value);
        };
        let value = schema::normalize_owned(of, value, UnknownMembers::Drop, "")
            .map_err(|error| ApiError::internal_error(&error.to_string()))?;
        if self.request.requested == Target::Part(Subresource::Scale) {
            return Ok(value);
        }
        let stored = stored(&self.request.kind);
        let mut draft = Draft::from_value(stored, value);
        views::to_stored(kind, &mut draft.value);
        write::set_defaults(&self.access.reads, stored, &mut draft);
        views::to_served(&self.request.kind, &mut draft.value);
        Ok(draft.to_value())
    }
}

fn failure(
    policy: &MutatingPolicy,
    binding: Option<&Binding>,
    text: &str,
    reason: &'static str,
) -> Failure {
    let name = &policy.name;
    let message = match binding {
        Some(binding) => {
            let binding = &binding.name;
            format!("policy '{name}' with binding '{binding}' denied request: {text}")
        }
        None => format!("policy {name:?} denied request: {text}"),
    };
    Failure {
        policy: policy.failure_policy,
        message,
        reason,
    }
}
