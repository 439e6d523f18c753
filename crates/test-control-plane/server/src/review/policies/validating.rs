//! The review of a request by `ValidatingAdmissionPolicy` objects.
//!
//! Upstream: `dispatcher.Dispatch` of the plugin `ValidatingAdmissionPolicy`

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_apimachinery::json::to_go_string;
use kube_test_control_plane_api::admission::FailurePolicy;
use kube_test_control_plane_api::admission::policies::{Decision, ValidatingPolicy, Verdict};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::{Value, json};

use super::question::{Question, is_excluded, shown_name};
use crate::admission::policy_index::{Binding, BoundPolicy};
use crate::review::input::Objects;
use crate::route::{Remarks, ResourceRequest};
use crate::state::Access;

/// The largest value of an audit annotation, in bytes.
///
/// Upstream: `maxAuditAnnotationValueLength`
const ANNOTATION_MAX: usize = 10 * 1024;

/// A reason to deny the request.
struct Denial {
    message: String,
    reason: String,
}

/// A review in progress.
struct Review<'a> {
    question: Question<'a>,
    remarks: &'a Remarks,
    denials: Vec<Denial>,
}

/// Reviews a request.
///
/// # Errors
///
/// A policy denies it.
pub(in crate::review) fn review(
    access: &Arc<Access>,
    request: &ResourceRequest,
    name: &str,
    objects: &Objects<'_>,
) -> ApiResult<()> {
    let index = access
        .reads
        .policies
        .index(&access.reads.store, request.admission_revision);
    if index.validating.is_empty() || is_excluded(&request.kind) {
        return Ok(());
    }
    let mut review = Review {
        question: Question::new(access, request, name, objects),
        remarks: &request.remarks,
        denials: Vec::new(),
    };
    for policy in &index.validating {
        review.ask(policy)?;
    }
    match review.denials.first() {
        None => Ok(()),
        Some(denial) => Err(denied(request, name, objects, denial)),
    }
}

fn denied(
    request: &ResourceRequest,
    name: &str,
    objects: &Objects<'_>,
    denial: &Denial,
) -> ApiError {
    let name = shown_name(name, objects);
    let mut error = ApiError::forbidden(&request.kind, name, &denial.message);
    let (code, reason) = match denial.reason.as_str() {
        "Forbidden" => (403, "Forbidden"),
        "Unauthorized" => (401, "Unauthorized"),
        "RequestEntityTooLarge" => (413, "RequestEntityTooLarge"),
        _ => (422, "Invalid"),
    };
    error.code = code;
    error.reason = reason.into();
    if let Some(details) = &mut error.details {
        details["causes"] = json!([{"message": denial.message}]);
    }
    error
}

impl Review<'_> {
    /// Asks a policy.
    fn ask(&mut self, bound: &BoundPolicy<ValidatingPolicy>) -> ApiResult<()> {
        let policy = &*bound.policy;
        let (matched, kind) = match self
            .question
            .matches(&policy.constraints, policy.param_kind.as_ref())
        {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(()),
            Err(text) => {
                self.misconfigured(bound, None, &text);
                return Ok(());
            }
        };
        let mut annotations: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut inputs = None;
        for binding in &bound.bindings {
            let params = self.question.params(binding, kind.as_ref());
            let params = match params {
                Ok(params) => params,
                Err(text) => {
                    self.misconfigured(bound, Some(binding), &text);
                    continue;
                }
            };
            if params.is_empty() {
                continue;
            }
            if inputs.is_none() {
                inputs = Some(self.question.inputs(&matched)?);
            }
            let Some(inputs) = &inputs else { continue };
            for params in params {
                let verdict = policy.validate(inputs, Some(&params));
                self.follow(bound, binding, verdict, &mut annotations);
            }
        }
        for (key, values) in annotations {
            let key = format!("{}/{key}", policy.name);
            self.remarks.annotate(key, values.join(", "));
        }
        Ok(())
    }

    /// Reports a policy or a binding that can't be used.
    fn misconfigured(
        &mut self,
        bound: &BoundPolicy<ValidatingPolicy>,
        binding: Option<&Binding>,
        text: &str,
    ) {
        if bound.policy.failure_policy == FailurePolicy::Ignore {
            return;
        }
        let what = match binding {
            None => "policy",
            Some(_) => "binding",
        };
        let text = format!("failed to configure {what}: {text}");
        self.deny(bound, binding, &text, String::new());
    }

    fn deny(
        &mut self,
        bound: &BoundPolicy<ValidatingPolicy>,
        binding: Option<&Binding>,
        text: &str,
        reason: String,
    ) {
        let name = &bound.policy.name;
        let with = binding.map(|binding| format!(" with binding '{}'", binding.name));
        let with = with.unwrap_or_default();
        let message = format!("ValidatingAdmissionPolicy '{name}'{with} denied request: {text}");
        self.denials.push(Denial { message, reason });
    }

    /// Follows the actions of a binding.
    fn follow(
        &mut self,
        bound: &BoundPolicy<ValidatingPolicy>,
        binding: &Binding,
        verdict: Verdict,
        annotations: &mut BTreeMap<String, Vec<String>>,
    ) {
        for decision in verdict.denials {
            for action in &binding.actions {
                let name = &bound.policy.name;
                match action.as_str() {
                    "Deny" => {
                        let reason = decision.reason.clone();
                        self.deny(bound, Some(binding), &decision.message, reason);
                    }
                    "Warn" => self.remarks.warn(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{name}' with binding \
                         '{}': {}",
                        binding.name, decision.message
                    )),
                    _ => self.publish(bound, binding, &decision),
                }
            }
        }
        for annotation in verdict.annotations {
            match annotation.value {
                Ok(mut value) => {
                    let ends = 0..=value.len().min(ANNOTATION_MAX);
                    let end = ends.rev().find(|end| value.is_char_boundary(*end));
                    value.truncate(end.unwrap_or(0));
                    let values = annotations.entry(annotation.key).or_default();
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                Err(text) => self.deny(bound, Some(binding), &text, String::new()),
            }
        }
    }

    /// Publishes a failed rule in the audit log.
    ///
    /// Upstream: `publishValidationFailureAnnotation`
    fn publish(
        &self,
        bound: &BoundPolicy<ValidatingPolicy>,
        binding: &Binding,
        decision: &Decision,
    ) {
        let shown = |value: Value| to_go_string(&value);
        let failure = format!(
            "[{{\"message\":{},\"policy\":{},\"binding\":{},\"expressionIndex\":{},\
             \"validationActions\":{}}}]",
            shown(json!(decision.message)),
            shown(json!(bound.policy.name)),
            shown(json!(binding.name)),
            decision.index,
            shown(json!(binding.actions)),
        );
        let key = "validation.policy.admission.k8s.io/validation_failure";
        self.remarks.annotate(key.to_owned(), failure);
    }
}
