//! The refusal of admission policies in a build that can't evaluate them.

use super::engine::{Errors, Place};

/// Refuses a policy.
pub(super) fn policy_conditions(spec: &Place<'_>, errors: &mut Errors) {
    errors.push(spec.forbidden(
        "this build does not support CEL expressions: enable the feature `cel` of \
         kube-test-control-plane",
    ));
}

/// Refuses the match conditions of a webhook.
pub(super) fn webhook_conditions(list: &Place<'_>, errors: &mut Errors) {
    if !list.is_empty() {
        policy_conditions(list, errors);
    }
}

/// Checks nothing: the policy is refused.
pub(super) fn policy_variables(_: &Place<'_>, _: &mut Errors) {}

/// Checks nothing: the policy is refused.
pub(super) fn validations(_: &Place<'_>, _: &mut Errors) {}

/// Checks nothing: the policy is refused.
pub(super) fn mutations(_: &Place<'_>, _: &mut Errors) {}

/// Refuses the selector of a device.
pub(super) fn device_expression(expression: &Place<'_>, errors: &mut Errors) {
    policy_conditions(expression, errors);
}
