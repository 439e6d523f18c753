//! `allOf`, `anyOf`, `oneOf` and `not`.
//!
//! Upstream: `schemaPropsValidator` of kube-openapi.

use serde_json::Value;

use super::{Node, Validation};
use crate::custom::Schema;
use crate::status::FieldError;

/// The outcome of one alternative.
struct Tried {
    errors: Vec<FieldError>,
    visited: usize,
}

impl Validation {
    pub(super) fn junctors(&mut self, schema: &Schema, node: Node<'_>) {
        let checks = &schema.checks;
        if !checks.any_of.is_empty() {
            let tried = self.try_all(&checks.any_of, node);
            if tried.iter().all(|one| !one.errors.is_empty()) {
                self.head(node, "must validate at least one schema (anyOf)");
                self.errors.extend(closest(tried));
            }
        }
        if !checks.one_of.is_empty() {
            let tried = self.try_all(&checks.one_of, node);
            let valid = tried.iter().filter(|one| one.errors.is_empty()).count();
            let start = "must validate one and only one schema (oneOf). Found";
            match valid {
                0 => {
                    self.head(node, &format!("{start} none valid"));
                    self.errors.extend(closest(tried));
                }
                1 => {}
                more => self.head(node, &format!("{start} {more} valid alternatives")),
            }
        }
        if !checks.all_of.is_empty() {
            let tried = self.try_all(&checks.all_of, node);
            let valid = tried.iter().filter(|one| one.errors.is_empty()).count();
            if valid < tried.len() {
                let rest = if valid == 0 { ". None validated" } else { "" };
                let errors = tried.into_iter().flat_map(|one| one.errors);
                self.errors.extend(errors);
                self.head(
                    node,
                    &format!("must validate all the schemas (allOf){rest}"),
                );
            }
        }
        if let Some(not) = &checks.not
            && self.try_one(not, node).errors.is_empty()
        {
            self.head(node, "must not validate the schema (not)");
        }
    }

    fn head(&mut self, node: Node<'_>, detail: &str) {
        let detail = format!("{:?} {detail}", self.shown(node.path));
        let empty = Value::from("");
        self.errors
            .push(FieldError::invalid("<nil>", &empty, &detail));
    }

    fn try_all(&self, schemas: &[Schema], node: Node<'_>) -> Vec<Tried> {
        let tried = schemas.iter().map(|schema| self.try_one(schema, node));
        tried.collect()
    }

    /// Checks an alternative as if the value were new.
    fn try_one(&self, schema: &Schema, node: Node<'_>) -> Tried {
        let mut inner = Self {
            errors: Vec::new(),
            hidden: self.hidden,
            visited: 0,
        };
        inner.check(schema, Node { old: None, ..node });
        Tried {
            errors: inner.errors,
            visited: inner.visited,
        }
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
