//! `allOf`, `anyOf`, `oneOf` and `not`.
//!
//! Upstream: `schemaPropsValidator` of kube-openapi.

use serde_json::Value;

use super::node::{Node, Validation};
use crate::custom::Schema;
use crate::status::FieldError;

/// The check of a value against a schema.
type Check = fn(&mut Validation, &Schema, Node<'_>);

/// The outcome of one alternative.
struct Tried {
    errors: Vec<FieldError>,
    visited: usize,
}

/// Checks the alternatives of a schema with `check`.
pub(super) fn junctors(validation: &mut Validation, schema: &Schema, node: Node<'_>, check: Check) {
    let checks = &schema.checks;
    if !checks.any_of.is_empty() {
        let tried = try_all(validation, &checks.any_of, node, check);
        if tried.iter().all(|one| !one.errors.is_empty()) {
            head(
                validation,
                node,
                "must validate at least one schema (anyOf)",
            );
            validation.errors.extend(closest(tried));
        }
    }
    if !checks.one_of.is_empty() {
        let tried = try_all(validation, &checks.one_of, node, check);
        let valid = tried.iter().filter(|one| one.errors.is_empty()).count();
        let start = "must validate one and only one schema (oneOf). Found";
        match valid {
            0 => {
                head(validation, node, &format!("{start} none valid"));
                validation.errors.extend(closest(tried));
            }
            1 => {}
            more => head(
                validation,
                node,
                &format!("{start} {more} valid alternatives"),
            ),
        }
    }
    if !checks.all_of.is_empty() {
        let tried = try_all(validation, &checks.all_of, node, check);
        let valid = tried.iter().filter(|one| one.errors.is_empty()).count();
        if valid < tried.len() {
            let rest = if valid == 0 { ". None validated" } else { "" };
            let errors = tried.into_iter().flat_map(|one| one.errors);
            validation.errors.extend(errors);
            head(
                validation,
                node,
                &format!("must validate all the schemas (allOf){rest}"),
            );
        }
    }
    if let Some(not) = &checks.not
        && try_one(validation, not, node, check).errors.is_empty()
    {
        head(validation, node, "must not validate the schema (not)");
    }
}

fn head(validation: &mut Validation, node: Node<'_>, detail: &str) {
    let detail = format!("{:?} {detail}", validation.shown(node.path));
    let empty = Value::from("");
    validation
        .errors
        .push(FieldError::invalid("<nil>", &empty, &detail));
}

fn try_all(
    validation: &Validation,
    schemas: &[Schema],
    node: Node<'_>,
    check: Check,
) -> Vec<Tried> {
    let tried = schemas
        .iter()
        .map(|schema| try_one(validation, schema, node, check));
    tried.collect()
}

/// Checks an alternative as if the value were new.
fn try_one(validation: &Validation, schema: &Schema, node: Node<'_>, check: Check) -> Tried {
    let mut inner = Validation {
        errors: Vec::new(),
        hidden: validation.hidden,
        visited: 0,
    };
    check(&mut inner, schema, Node { old: None, ..node });
    Tried {
        errors: inner.errors,
        visited: inner.visited,
    }
}

/// Returns the errors of the alternative that came closest.
fn closest(tried: Vec<Tried>) -> Vec<FieldError> {
    let closer = |best: Tried, one: Tried| {
        if one.visited > best.visited {
            one
        } else {
            best
        }
    };
    tried
        .into_iter()
        .reduce(closer)
        .map_or_else(Vec::new, |best| best.errors)
}
