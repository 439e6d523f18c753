//! `allOf`, `anyOf`, `oneOf` and `not`.
//!
//! Upstream: `schemaPropsValidator` of kube-openapi.

use serde_json::Value;

use super::node::{Node, Validation};
use crate::custom::Schema;
use crate::status::FieldError;

/// The check of a value against a schema.
type Check = fn(&mut Validation, &Schema, Node<'_>);

/// Checks the alternatives of a schema with `check`.
pub(super) fn junctors(validation: &mut Validation, schema: &Schema, node: Node<'_>, check: Check) {
    validation.matched += 2;
    let checks = &schema.checks;
    if !checks.any_of.is_empty() {
        let tried = try_all(validation, &checks.any_of, node, check);
        if tried.iter().all(|one| !one.errors.is_empty()) {
            let detail = "must validate at least one schema (anyOf)";
            head(validation, node, detail);
        }
        merge(validation, best(tried));
    }
    if !checks.one_of.is_empty() {
        let tried = try_all(validation, &checks.one_of, node, check);
        let valid = tried.iter().filter(|one| one.errors.is_empty()).count();
        let start = "must validate one and only one schema (oneOf). Found";
        match valid {
            0 => {
                head(validation, node, &format!("{start} none valid"));
                merge(validation, best(tried));
            }
            1 => merge(validation, best(tried)),
            more => {
                let detail = format!("{start} {more} valid alternatives");
                head(validation, node, &detail);
            }
        }
    }
    if !checks.all_of.is_empty() {
        let tried = try_all(validation, &checks.all_of, node, check);
        let valid = tried.iter().filter(|one| one.errors.is_empty()).count();
        let rest = match valid {
            0 => Some(". None validated"),
            some => (some < tried.len()).then_some(""),
        };
        for one in tried {
            merge(validation, one);
        }
        if let Some(rest) = rest {
            let detail = format!("must validate all the schemas (allOf){rest}");
            head(validation, node, &detail);
        }
    }
    if let Some(not) = &checks.not
        && try_one(validation, not, node, check).errors.is_empty()
    {
        head(validation, node, "must not validate the schema (not)");
    }
}

fn head(validation: &mut Validation, node: Node<'_>, detail: &str) {
    let detail = format!("{:?} {detail}", node.path);
    let empty = Value::from("");
    validation.push(FieldError::invalid("", &empty, &detail));
}

/// Adds the outcome of an alternative.
fn merge(validation: &mut Validation, one: Validation) {
    validation.matched += one.matched;
    for error in one.errors {
        validation.push(error);
    }
}

fn try_all(
    validation: &Validation,
    schemas: &[Schema],
    node: Node<'_>,
    check: Check,
) -> Vec<Validation> {
    let tried = schemas
        .iter()
        .map(|schema| try_one(validation, schema, node, check));
    tried.collect()
}

/// Checks an alternative. The value itself counts as new, unchanged ones inside of it have no errors.
fn try_one(validation: &Validation, schema: &Schema, node: Node<'_>, check: Check) -> Validation {
    let mut inner = Validation {
        is_default: validation.is_default,
        ..Validation::default()
    };
    check(&mut inner, schema, Node { old: None, ..node });
    inner
}

/// Returns the first valid alternative, or else the one that came closest.
fn best(tried: Vec<Validation>) -> Validation {
    let mut tried = tried.into_iter();
    let mut best = tried.next().unwrap_or_default();
    for one in tried {
        if !best.errors.is_empty() && (one.errors.is_empty() || one.matched > best.matched) {
            best = one;
        }
    }
    best
}
