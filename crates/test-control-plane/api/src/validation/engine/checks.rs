//! The clauses of rules as functions.

use kube_apimachinery::quantity::Quantity;
use kube_apimachinery::schema::Shape;
use serde_json::{Value, json};

use super::place::{Errors, Place};
use super::print;
use super::rules::{Check, Guard, Syntax};
use crate::go::{ip, names};
use crate::status::FieldError;

pub(super) const GUARDS: &[(&str, Guard)] = &[
    ("absent", |of, _, args| {
        !args.iter().any(|path| of.member(path).is_present())
    }),
    ("added", |_, value, _| !is_stored_element(value)),
    ("changed", |_, value, _| value.old != Some(value.value)),
    ("differ", |of, _, args| {
        let mut values = args.windows(2);
        values.any(|pair| of.member(pair[0]).value != of.member(pair[1]).value)
    }),
    ("empty", |_, value, _| value.is_empty()),
    ("filled", |of, _, args| is_filled(of, args)),
    ("if", |of, _, args| has_values(of, args)),
    ("like", |_, value, args| is_like(value.text(), args)),
    ("longer", |_, value, args| {
        value.length() > number(args.first())
    }),
    ("negative", |_, value, _| {
        value
            .quantity()
            .is_some_and(|found| found < Quantity::default())
    }),
    ("not-positive", |_, value, _| {
        value
            .quantity()
            .is_some_and(|found| found <= Quantity::default())
    }),
    ("on-create", |_, value, _| value.context.old.is_none()),
    ("on-update", |_, value, _| value.context.old.is_some()),
    ("optional", |_, value, _| !value.is_empty()),
    ("over", |of, _, args| {
        let found = args.first().map_or(0, |path| of.member(path).number());
        found > number(args.get(1))
    }),
    ("pod", |_, value, _| {
        value.context.pod.is_some_and(|pod| pod.is_whole)
    }),
    ("present", |_, value, _| value.is_present()),
    ("shorter", |_, value, args| {
        value.length() < number(args.first())
    }),
    ("some", |of, _, args| {
        args.iter().any(|path| of.member(path).is_present())
    }),
    ("several", |of, _, args| {
        let present = args.iter().filter(|path| of.member(path).is_present());
        present.count() > 1
    }),
    ("template", |_, value, _| {
        value.context.pod.is_some_and(|pod| !pod.is_whole)
    }),
    ("unless", |of, _, args| !has_values(of, args)),
    ("unlike", |_, value, args| !is_like(value.text(), args)),
    ("unnamed", |_, value, _| {
        value.context.pod.is_some_and(|pod| !pod.is_named)
    }),
    ("with", |of, _, args| {
        args.iter().all(|path| of.member(path).is_present())
    }),
    ("without", |of, _, args| !is_filled(of, args)),
];

pub(super) const SYNTAXES: &[(&str, Syntax)] = &[
    ("condition-reason", names::condition_reason),
    ("config-key", names::config_key),
    ("descending-path", names::descending_path),
    ("header", names::header),
    ("host", names::host),
    ("label", names::dns_label),
    ("label-value", names::label_value),
    ("letter-label", names::letter_label),
    ("local-path", names::local_path),
    ("no-address", names::no_address),
    ("no-backsteps", names::no_backsteps),
    ("path-segment", names::path_segment),
    ("port-name", names::port_name),
    ("subdomain", names::dns_subdomain),
    ("subdomain-or-prefix", names::subdomain_prefix),
    ("sysctl", names::sysctl),
    ("variable", names::variable),
];

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("above", |value, args, detail, errors| {
        compare(value, args, i64::gt, detail, errors);
    }),
    ("absolute-path", |value, _, _, errors| {
        if !value.text().starts_with('/') {
            value.invalid_for(["must be an absolute path"], errors);
        }
    }),
    ("at-least", |value, args, detail, errors| {
        compare(value, args, i64::ge, detail, errors);
    }),
    ("at-most", |value, args, detail, errors| {
        compare(value, args, i64::le, detail, errors);
    }),
    ("cidr", |value, _, _, errors| {
        let wrong = ip::cidr_errors(value.text());
        value.invalid_for(wrong, errors);
    }),
    ("enum", one_of),
    ("filled-text", |value, _, detail, errors| {
        if value.text().is_empty() {
            value.invalid_for([detail_or(detail, "must not be empty")], errors);
        }
    }),
    ("forbidden", |value, _, detail, errors| {
        errors.push(value.forbidden(detail));
    }),
    ("given", |value, _, detail, errors| {
        if !value.is_present() {
            errors.push(value.required(detail));
        }
    }),
    ("immutable", |value, _, detail, errors| {
        if value.is_changed() {
            errors.push(value.invalid(detail_or(detail, "field is immutable")));
        }
    }),
    ("invalid", |value, _, detail, errors| {
        errors.push(value.invalid(detail));
    }),
    ("invalid-as", |value, args, detail, errors| {
        let shown = args.first().copied().unwrap_or_default();
        errors.push(FieldError::invalid_text(value.path(), shown, detail));
    }),
    ("invalid-here", |value, _, detail, errors| {
        errors.push(FieldError::invalid_object(value.path(), detail));
    }),
    ("ip", |value, _, _, errors| {
        value.invalid_for(ip::errors(value.text()), errors);
    }),
    ("max", |value, args, detail, errors| {
        let (max, found) = (number(args.first()), value.number());
        if found > max {
            let standard = format!("must be less than or equal to {max}");
            invalid_number(value, detail_or(detail, &standard), errors);
        }
    }),
    ("min", |value, args, detail, errors| {
        let (min, found) = (number(args.first()), value.number());
        if found < min {
            let standard = format!("must be greater than or equal to {min}");
            invalid_number(value, detail_or(detail, &standard), errors);
        }
    }),
    ("missing", |value, _, detail, errors| {
        errors.push(value.required(detail));
    }),
    ("most", |value, args, _, errors| {
        let (max, found) = (number(args.first()), value.values().count());
        if value.length() > max {
            errors.push(FieldError::too_many(value.path(), found, max));
        }
    }),
    ("not-less", |value, _, detail, errors| {
        let before = value.old.and_then(Value::as_i64).unwrap_or_default();
        if value.number() < before {
            invalid_number(value, detail, errors);
        }
    }),
    ("only", only),
    ("port", |value, _, _, errors| number_or_name(value, errors)),
    ("qualified", |value, _, _, errors| {
        value.invalid_for(names::qualified_name(value.text()), errors);
    }),
    ("qualified-any-case", |value, _, _, errors| {
        let lower = value.text().to_lowercase();
        for why in names::qualified_name(&lower) {
            errors.push(FieldError::invalid(value.path(), &json!(lower), &why));
        }
    }),
    ("range", |value, args, detail, errors| {
        range(
            value,
            number(args.first()),
            number(args.get(1)),
            detail,
            errors,
        );
    }),
    ("required", |value, _, detail, errors| {
        if value.is_empty() {
            errors.push(value.required(detail));
        }
    }),
    ("sealed", |value, _, detail, errors| {
        if value.is_changed() {
            errors.push(value.forbidden(detail));
        }
    }),
    ("single", |value, _, detail, errors| {
        if value.values().count() != 1 {
            errors.push(value.required(detail));
        }
    }),
    ("too-long", |value, args, _, errors| {
        let max = args.first().and_then(|max| max.parse().ok());
        value.limited(max.unwrap_or_default(), errors);
    }),
    ("trimmed", |value, _, detail, errors| {
        if value.text() != value.text().trim() {
            let standard = "must not have leading or trailing whitespace";
            value.invalid_for([detail_or(detail, standard)], errors);
        }
    }),
    ("warn", |value, _, detail, errors| {
        errors.push(FieldError::warning(value.path(), detail));
    }),
    ("unsupported", |value, known, _, errors| {
        errors.push(value.not_supported(known));
    }),
];

fn detail_or<'a>(detail: &'a str, standard: &'a str) -> &'a str {
    if detail.is_empty() { standard } else { detail }
}

/// Returns true if all fields have one of their values: `member=A|B`.
fn has_values(of: &Place<'_>, args: &[&str]) -> bool {
    let conditions = args.iter().filter_map(|arg| arg.split_once('='));
    let mut met = conditions.map(|(member, values)| {
        let found = match member.split_once(':') {
            Some(("spec", path)) => path
                .split('.')
                .try_fold(of.pod_spec(), |value, step| value.get(step))
                .unwrap_or(&Value::Null),
            Some(("old", path)) => of.member(path).old.unwrap_or(&Value::Null),
            _ => of.member(member).value,
        };
        let found = match found {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        values.split('|').any(|value| value == found)
    });
    met.all(|met| met)
}

/// Returns true for an element that the stored list has as well.
fn is_stored_element(value: &Place<'_>) -> bool {
    value
        .up()
        .is_some_and(|list| list.stored().contains(value.value))
}

/// Returns true if a text has one of these forms, in which a `*` at an end means any text.
fn is_like(text: &str, forms: &[&str]) -> bool {
    forms.iter().any(|form| {
        let (start, end) = (form.strip_suffix('*'), form.strip_prefix('*'));
        match (end, start) {
            (Some(end), Some(_)) => text.contains(end.trim_end_matches('*')),
            (Some(end), None) => text.ends_with(end),
            (None, Some(start)) => text.starts_with(start),
            (None, None) => text == *form,
        }
    })
}

/// Reports a number that isn't in this relation to those of other fields of the object.
fn compare(
    value: &Place<'_>,
    fields: &[&str],
    holds: fn(&i64, &i64) -> bool,
    detail: &str,
    errors: &mut Errors,
) {
    let other = |field| value.up().map_or(0, |of| of.member(field).number());
    if fields
        .iter()
        .any(|field| !holds(&value.number(), &other(field)))
    {
        invalid_number(value, detail, errors);
    }
}

/// Returns true if any of the fields isn't empty.
fn is_filled(of: &Place<'_>, members: &[&str]) -> bool {
    members.iter().any(|member| !of.member(member).is_empty())
}

fn one_of(value: &Place<'_>, known: &[&str], detail: &str, errors: &mut Errors) {
    let text = value.text();
    if known.contains(&text) {
        return;
    }
    if detail.is_empty() {
        errors.push(value.not_supported(known));
    } else {
        value.invalid_for([detail], errors);
    }
}

fn number(arg: Option<&&str>) -> i64 {
    arg.and_then(|arg| arg.parse().ok()).unwrap_or_default()
}

fn invalid_number(value: &Place<'_>, detail: &str, errors: &mut Errors) {
    let shown = value.number().to_string();
    errors.push(FieldError::invalid_text(value.path(), &shown, detail));
}

fn range(value: &Place<'_>, min: i64, max: i64, detail: &str, errors: &mut Errors) {
    if !(min..=max).contains(&value.number()) {
        let standard = format!("must be between {min} and {max}, inclusive");
        invalid_number(value, detail_or(detail, &standard), errors);
    }
}

/// Forbids fields besides the allowed ones, in the order of the type.
///
/// Upstream: `validateFieldAllowList`.
fn only(value: &Place<'_>, allowed: &[&str], detail: &str, errors: &mut Errors) {
    let of = value.object_type();
    for member in members(value) {
        let shown = of.map_or_else(|| member.to_owned(), |of| print::lower_go_name(of, member));
        let place = value.member_as(member, &shown);
        let field = of.and_then(|of| of.field(member));
        let is_set = match field.map(|field| field.shape) {
            Some(Shape::Pointer | Shape::List | Shape::Map) => place.is_present(),
            _ => !place.is_empty(),
        };
        if !allowed.contains(&member) && is_set {
            errors.push(place.forbidden(detail));
        }
    }
}

/// Reports an invalid number or name of a port.
///
/// Upstream: `ValidatePortNumOrName`.
pub(in crate::validation) fn number_or_name(value: &Place<'_>, errors: &mut Errors) {
    match value.value {
        Value::String(name) => value.invalid_for(names::port_name(name), errors),
        _ => range(value, 1, 65535, "", errors),
    }
}

/// Returns the fields of an object, in the order of its type.
fn members<'a>(place: &Place<'a>) -> Vec<&'a str> {
    let present = place.value.as_object().into_iter().flatten();
    let mut names: Vec<&str> = present.map(|(name, _)| name.as_str()).collect();
    let fields = place.object_type().map(|of| of.fields.as_slice());
    let declared = |name: &&str| {
        let mut fields = fields.unwrap_or_default().iter();
        fields.position(|field| field.name == *name)
    };
    names.sort_by_key(|name| declared(name).unwrap_or(usize::MAX));
    names
}
