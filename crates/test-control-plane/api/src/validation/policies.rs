//! The expressions of admission policies.
//!
//! Upstream: `validateMatchConditions`, `validateVariable`, `validateValidation` and
//! `validateAuditAnnotation` of `pkg/apis/admissionregistration/validation`

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::engine::{Errors, Place};
use crate::admission::policies::{Authorizers, CompileError, Environment, Expression, Returns};
use crate::cel::{Program, Type};
use crate::go::names;
use crate::status::FieldError;

/// The largest number of match conditions.
const CONDITIONS_MAX: i64 = 64;

/// The largest number of audit annotations, and of bytes in the expression of one.
const ANNOTATIONS_MAX: usize = 20;
const ANNOTATION_EXPRESSION_MAX: usize = 5 * 1024;

/// The largest number of bytes in the expression that selects a device.
const DEVICE_EXPRESSION_MAX: usize = 10 * 1024;

/// The reasons of validations.
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

/// Words that are no names in expressions.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Checks the match conditions of a policy.
pub(super) fn policy_conditions(spec: &Place<'_>, errors: &mut Errors) {
    let is_same = |name: &str| {
        let place = spec.member(name);
        place.old.is_some() && !place.is_changed()
    };
    if is_same("paramKind") && is_same("matchConditions") {
        return;
    }
    let environment = Environment {
        params: spec.member("paramKind").is_present().then_some(Type::Dyn),
        authorizers: Authorizers::WithRequestResource,
        ..Environment::default()
    };
    conditions(&spec.member("matchConditions"), &environment, errors);
}

/// Checks the variables of a policy.
pub(super) fn policy_variables(spec: &Place<'_>, errors: &mut Errors) {
    variables(spec, errors);
}

/// Checks the match conditions of a webhook.
pub(super) fn webhook_conditions(list: &Place<'_>, errors: &mut Errors) {
    let environment = Environment {
        authorizers: Authorizers::WithRequestResource,
        ..Environment::default()
    };
    conditions(list, &environment, errors);
}

/// Upstream: `validateMatchConditions`
fn conditions(list: &Place<'_>, environment: &Environment, errors: &mut Errors) {
    let found = list.elements().count();
    if i64::try_from(found).is_ok_and(|found| found > CONDITIONS_MAX) {
        errors.push(FieldError::too_many(list.path(), found, CONDITIONS_MAX));
    }
    let mut known = BTreeSet::new();
    for condition in list.elements() {
        let source = condition.member("expression");
        if source.text().trim().is_empty() {
            errors.push(source.required(""));
        } else {
            let trimmed = source.text().trim();
            let compiled = Expression::compile(trimmed, environment, Returns::Bool);
            report(&source, trimmed, &compiled, errors);
        }
        let name = condition.member("name");
        if name.is_empty() {
            errors.push(name.required(""));
            continue;
        }
        name.invalid_for(names::qualified_name(name.text()), errors);
        if !known.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
    }
}

/// Reports the compiler's error of an expression.
fn report(at: &Place<'_>, source: &str, compiled: &Expression, errors: &mut Errors) {
    errors.extend(compiled.error().map(|error| match error {
        CompileError::Invalid(text) => at.invalid_as(&json!(source), text),
        CompileError::Internal(text) => FieldError::internal(at.path(), text),
    }));
}

/// Returns the environment of a policy's rules, without its variables.
fn environment(spec: &Place<'_>) -> Environment {
    let has_variables = spec.member("variables").elements().next().is_some();
    Environment {
        params: spec.member("paramKind").is_present().then_some(Type::Dyn),
        authorizers: Authorizers::WithRequestResource,
        variables: has_variables.then(Vec::new),
        ..Environment::default()
    }
}

/// Checks the variables of a policy, and declares them.
///
/// Upstream: `validateVariable`
pub(super) fn variables(spec: &Place<'_>, errors: &mut Errors) -> Environment {
    let mut environment = environment(spec);
    for variable in spec.member("variables").elements() {
        let (name, source) = (variable.member("name"), variable.member("expression"));
        if name.text().trim().is_empty() {
            errors.push(name.required("name is not specified"));
        } else if !is_identifier(name.text()) {
            errors.push(name.invalid("must be a valid CEL identifier"));
        }
        if source.text().trim().is_empty() {
            errors.push(source.required("expression is not specified"));
            continue;
        }
        let compiled = Expression::compile(source.text(), &environment, Returns::Anything);
        report(&source, source.text(), &compiled, errors);
        environment.add_variable(name.text(), compiled.result_type());
    }
    environment
}

fn is_identifier(name: &str) -> bool {
    let is_letter = |letter: char| letter == '_' || letter.is_ascii_alphabetic();
    name.starts_with(is_letter)
        && name
            .chars()
            .all(|letter| is_letter(letter) || letter.is_ascii_digit())
        && !RESERVED.contains(&name)
}

/// Upstream: the part of `validateValidatingAdmissionPolicySpec` about rules
pub(super) fn validations(spec: &Place<'_>, errors: &mut Errors) {
    let (validations, annotations) = (spec.member("validations"), spec.member("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        errors.push(validations.required(detail));
        errors.push(annotations.required(detail));
        return;
    }
    let environment = variables(spec, &mut Errors::new());
    for validation in validations.elements() {
        check_validation(&validation, &environment, errors);
    }
    if annotations.elements().count() > ANNOTATIONS_MAX {
        let detail = format!("must not have more than {ANNOTATIONS_MAX} auditAnnotations");
        errors.push(annotations.invalid(&detail));
    }
    let mut known = BTreeSet::new();
    for annotation in annotations.elements() {
        check_annotation(spec, &annotation, &environment, errors);
        let key = annotation.member("key");
        if !known.insert(key.text().to_owned()) {
            errors.push(key.duplicate());
        }
    }
}

/// Upstream: `validateValidation`
fn check_validation(rule: &Place<'_>, environment: &Environment, errors: &mut Errors) {
    let source = rule.member("expression");
    if source.text().trim().is_empty() {
        errors.push(source.required("expression is not specified"));
    } else {
        let compiled = Expression::compile(source.text(), environment, Returns::Bool);
        report(&source, source.text(), &compiled, errors);
    }
    let computed = rule.member("messageExpression");
    if !computed.is_empty() && computed.text().trim().is_empty() {
        errors.push(computed.invalid("must be non-empty if specified"));
    } else if !computed.is_empty() {
        let environment = Environment {
            authorizers: Authorizers::None,
            ..environment.clone()
        };
        let compiled = Expression::compile(computed.text(), &environment, Returns::Text);
        report(&computed, computed.text(), &compiled, errors);
    }
    let message = rule.member("message");
    let trimmed = message.text().trim();
    if !message.is_empty() && trimmed.is_empty() {
        errors.push(message.invalid("must be non-empty if specified"));
    } else if trimmed.contains(['\n', '\r']) {
        errors.push(message.invalid("must not contain line breaks"));
    }
    let reason = rule.member("reason");
    if reason.is_present() && !REASONS.contains(&reason.text()) {
        errors.push(reason.not_supported(&REASONS));
    }
}

/// Upstream: `validateAuditAnnotation`
fn check_annotation(
    spec: &Place<'_>,
    annotation: &Place<'_>,
    environment: &Environment,
    errors: &mut Errors,
) {
    let key = annotation.member("key");
    let object = spec.up().map_or(&Value::Null, |object| object.value);
    match object.pointer("/metadata/name").and_then(Value::as_str) {
        None | Some("") => errors.push(key.invalid("requires metadata.name be non-empty")),
        Some(name) => {
            let qualified = format!("{name}/{}", key.text());
            for detail in names::qualified_name(&qualified) {
                let value = json!(qualified);
                errors.push(key.invalid_as(&value, &detail));
            }
        }
    }
    let source = annotation.member("valueExpression");
    match source.text().trim() {
        "" => errors.push(source.required("valueExpression is not specified")),
        trimmed if trimmed.len() > ANNOTATION_EXPRESSION_MAX => {
            let detail = format!("must not exceed {ANNOTATION_EXPRESSION_MAX} bytes in length");
            errors.push(source.required(&detail));
        }
        trimmed => {
            let compiled = Expression::compile(trimmed, environment, Returns::TextOrNull);
            report(&source, source.text(), &compiled, errors);
        }
    }
}

/// Upstream: `validateMutation`
pub(super) fn mutations(spec: &Place<'_>, errors: &mut Errors) {
    let list = spec.member("mutations");
    if list.is_empty() {
        errors.push(list.required("mutations must contain at least one item"));
        return;
    }
    let mut environment = variables(spec, &mut Errors::new());
    environment.makes_objects = true;
    environment.variables.get_or_insert_default();
    for mutation in list.elements() {
        let patch_type = mutation.member("patchType");
        let (own, other, returns) = match patch_type.text() {
            "" => {
                errors.push(patch_type.required(""));
                continue;
            }
            "JSONPatch" => ("jsonPatch", "applyConfiguration", Returns::Patch),
            "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Returns::Object),
            _ => {
                errors.push(patch_type.not_supported(&["ApplyConfiguration", "JSONPatch"]));
                continue;
            }
        };
        let patch_type = patch_type.text();
        check_mutation(
            &mutation.member(own),
            patch_type,
            &environment,
            returns,
            errors,
        );
        let forbidden = mutation.member(other);
        if forbidden.is_present() {
            let detail = format!("must not be specified when patchType is {patch_type}");
            let value = json!(format!("{{{other}}}"));
            errors.push(forbidden.invalid_as(&value, &detail));
        }
    }
}

fn check_mutation(
    own: &Place<'_>,
    patch_type: &str,
    environment: &Environment,
    returns: Returns,
    errors: &mut Errors,
) {
    if !own.is_present() {
        errors.push(own.required(&format!("must be specified when patchType is {patch_type}")));
        return;
    }
    let source = own.member("expression");
    let trimmed = source.text().trim();
    if trimmed.is_empty() {
        errors.push(source.required(""));
        return;
    }
    let compiled = Expression::compile(trimmed, environment, returns);
    report(&source, trimmed, &compiled, errors);
}

/// Upstream: `validateCELSelector`
pub(super) fn device_expression(expression: &Place<'_>, errors: &mut Errors) {
    let source = expression.text();
    if source.len() > DEVICE_EXPRESSION_MAX {
        errors.push(expression.too_long(DEVICE_EXPRESSION_MAX));
        return;
    }
    let attributes = |of| Type::map(Type::String, Type::map(Type::String, of));
    let fields = [
        ("driver", Type::String),
        ("allowMultipleAllocations", Type::Bool),
        ("attributes", attributes(Type::Dyn)),
        ("capacity", attributes(Type::Opaque("kubernetes.Quantity"))),
    ];
    let device = [("device", Type::object("kubernetes.DRADevice", fields))];
    let result = Program::parse(source).and_then(|it| Ok((it.result_type(&device, false)?, it)));
    let detail = match result {
        Ok((Type::Bool | Type::Dyn, program)) => {
            errors.extend(program.instantiate().err().map(|text| {
                let text = format!("program instantiation failed: {text}");
                FieldError::internal(expression.path(), &text)
            }));
            return;
        }
        Ok((of, _)) => format!("must evaluate to bool or the unknown type, not {of}"),
        Err(text) => format!("compilation failed: {text}"),
    };
    errors.push(expression.invalid_as(&json!(source), &detail));
}
