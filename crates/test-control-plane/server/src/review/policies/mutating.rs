//! The changes of a request by `MutatingAdmissionPolicy` objects.
//!
//! Upstream: `policyDispatcher.Dispatch`, and `dispatchInvocations` of the plugin
//! `MutatingAdmissionPolicy`

use std::rc::Rc;
use std::sync::Arc;

use kube_test_control_plane_api::admission::policies::{Change, Inputs, MutatingPolicy};
use kube_test_control_plane_api::admission::{Equivalent, FailurePolicy};
use kube_test_control_plane_api::managed_fields::merge_unmanaged;
use kube_test_control_plane_api::members::text_at;
use kube_test_control_plane_api::options::FieldValidation;
use kube_test_control_plane_api::patch::JsonPatch;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::{Value, json};

use super::question::{Question, is_excluded, shown_name};
use crate::admission::policy_index::{Binding, BoundPolicy};
use crate::review::form::Form;
use crate::review::input::Objects;
use crate::review::mutation::{Mutation, PolicyCall};
use crate::review::reinvocation::Reinvocation;
use crate::route::ResourceRequest;
use crate::state::Access;

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

/// Changes the object of a request.
///
/// # Errors
///
/// A policy fails, or changes the object to something else.
pub(in crate::review) fn mutate(mutation: &mut Mutation<'_>) -> ApiResult<()> {
    let Mutation {
        access,
        request,
        name,
        ..
    } = *mutation;
    let index = access
        .reads
        .policies
        .index(&access.reads.store, request.admission_revision);
    if index.mutating.is_empty() || is_excluded(&request.kind) {
        return Ok(());
    }
    let mut run = Run {
        access,
        request,
        name,
        objects: mutation.objects.clone(),
        failures: Vec::new(),
    };
    let invocations = run.invocations(&index.mutating);
    let is_changed = run.run_all(&invocations, &mut mutation.policies)?;
    let failures: Vec<&Failure> = run
        .failures
        .iter()
        .filter(|failure| failure.policy == FailurePolicy::Fail)
        .collect();
    if let Some(first) = failures.first() {
        return Err(denied(request, name, &mutation.objects, first, &failures));
    }
    mutation.objects.object = run.objects.object;
    mutation.is_changed |= is_changed;
    mutation.is_decoded |= is_changed;
    Ok(())
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

impl<'a> Run<'a> {
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

    /// Runs the invocations of this round. Returns true if one made a change, even one without an
    /// effect.
    fn run_all(
        &mut self,
        invocations: &[Invocation],
        calls: &mut Reinvocation<PolicyCall>,
    ) -> ApiResult<bool> {
        let mut is_changed = false;
        for invocation in invocations {
            let before = self.objects.object.clone();
            let Some(changed) = self.run(invocation, calls)? else {
                continue;
            };
            is_changed |= changed;
            if let (Some(before), Some(after)) = (before, &self.objects.object)
                && !self
                    .form(invocation)
                    .is_same(&self.access.reads, after, &before)
            {
                calls.changed();
            }
            if invocation.policy.is_reinvoked {
                calls.note(invocation.call());
            }
        }
        if is_changed {
            calls.changed();
        }
        Ok(is_changed)
    }

    /// Makes the changes of an invocation. Returns true if it made any, and `None` if it doesn't apply
    /// or is not called in this round.
    fn run(
        &mut self,
        invocation: &Invocation,
        calls: &Reinvocation<PolicyCall>,
    ) -> ApiResult<Option<bool>> {
        let policy = &invocation.policy;
        let params = Some(&invocation.params);
        let fail = |run: &mut Self, text: &str| {
            let failure = failure(policy, Some(&invocation.binding), text, "Invalid");
            run.failures.push(failure);
        };
        let inputs = self.inputs(invocation)?;
        match policy.matches(&inputs, params) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(text) => {
                fail(self, &text);
                return Ok(None);
            }
        }
        if !calls.calls(&invocation.call()) {
            return Ok(None);
        }
        let mut is_changed = false;
        let form = self.form(invocation);
        for index in 0..policy.changes() {
            let Some(before) = &self.objects.object else {
                break;
            };
            let before = form.of(before).into_owned();
            let inputs = self.inputs(invocation)?;
            let change = policy.change(index, &inputs, params);
            let is_patch = matches!(change, Ok(Change::Patch(_)));
            let changed = change.and_then(|change| self.changed(&form, &before, &change));
            match changed {
                Ok(value) => {
                    is_changed = true;
                    if is_patch {
                        form.check_fields(&self.access.reads, &value)?;
                    }
                    let value = form.decoded(&self.access.reads, value)?;
                    self.objects.object = Some(form.back(value));
                }
                Err(text) => fail(self, &text),
            }
        }
        Ok(Some(is_changed))
    }

    /// Returns the form of the objects that an invocation reads and changes.
    fn form(&self, invocation: &Invocation) -> Form<'a> {
        Form::matched(&self.access.reads, self.request, &invocation.matched)
    }

    fn inputs(&self, invocation: &Invocation) -> ApiResult<Rc<Inputs>> {
        let question = Question::new(self.access, self.request, self.name, &self.objects);
        question.inputs(&invocation.matched)
    }

    /// Returns the object with a change.
    fn changed(&self, form: &Form<'_>, before: &Value, change: &Change) -> Result<Value, String> {
        match change {
            Change::Apply(config) => {
                let mut config = config.clone();
                for name in ["apiVersion", "kind"] {
                    config[name] = before[name].clone();
                }
                let applied = self.applied(form, before, &config);
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

    fn applied(&self, form: &Form<'_>, before: &Value, config: &Value) -> Result<Value, String> {
        if let Some(kind) = form.untyped() {
            return Err(format!(
                "failed to convert patch object to typed object: no corresponding type for {kind}"
            ));
        }
        let strictness = self.access.reads.behaviour().strictness();
        merge_unmanaged(&form.kind, before, config, strictness)
    }
}

impl Invocation {
    /// Returns what tells the invocation from others.
    fn call(&self) -> PolicyCall {
        let of_params = |pointer| text_at(&self.params, pointer).to_owned();
        PolicyCall {
            policy: self.policy.name.clone(),
            binding: self.binding.name.clone(),
            params: (
                of_params("/metadata/namespace"),
                of_params("/metadata/name"),
            ),
        }
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
