//! Costs of functions.
//!
//! Upstream: `functionCost` of cel-go, `EstimateCallCost` of `k8s.io/apiserver`, and the estimates of
//! the extensions for lists and sets

use cel::common::ast::{Expr, IdedExpr, LiteralValue};

use super::{Estimate, LIST, TRAVERSAL, scaled};
use crate::cel::types::Type;

/// The cost of one unit of a pattern's length.
const PATTERN: f64 = 0.25;

/// The size of the largest pattern of a named format.
const PATTERN_OF_FORMATS: f64 = 128.0;

impl Estimate<'_> {
    /// Returns the cost of a function besides its arguments.
    pub(super) fn function(
        &mut self,
        id: u64,
        name: &str,
        target: Option<&IdedExpr>,
        arguments: &[IdedExpr],
    ) -> u64 {
        match target {
            Some(target) if self.is(target, |of| matches!(of, Type::List(_))) => {
                self.of_list(id, name, target, arguments)
            }
            Some(target) => self.of_value(id, name, target, arguments),
            None => self.of_arguments(id, name, arguments),
        }
    }

    fn of_arguments(&mut self, id: u64, name: &str, arguments: &[IdedExpr]) -> u64 {
        let sizes: Vec<u64> = arguments.iter().map(|part| self.size(part)).collect();
        let first = sizes.first().copied().unwrap_or(0);
        let is = |estimate: &Self, wanted: &Type| {
            let first = arguments.first();
            first.is_some_and(|part| estimate.is(part, |of| of == wanted))
        };
        match (name, sizes.as_slice()) {
            ("bytes", _) if is(self, &Type::String) => {
                self.sizes.insert(id, first.saturating_mul(4));
                scaled(first, TRAVERSAL)
            }
            ("string", _) if is(self, &Type::Bytes) => {
                self.sizes.insert(id, first);
                scaled(first, TRAVERSAL)
            }
            ("quote", _) => {
                let made = first.saturating_mul(2).saturating_add(2);
                self.sizes.insert(id, made);
                scaled(first, TRAVERSAL)
            }
            ("url", _) => scaled(first, TRAVERSAL),
            ("range", _) => {
                let count = arguments.first().and_then(literal);
                self.made(id, count.unwrap_or(u64::MAX), 1.0)
            }
            ("contains" | "intersects", [one, other]) => {
                one.saturating_mul(*other).saturating_add(1)
            }
            ("equivalent", [one, other]) => {
                let pairs = one.saturating_mul(*other);
                pairs.saturating_mul(2).saturating_add(1)
            }
            _ => 1,
        }
    }

    fn of_list(&mut self, id: u64, name: &str, target: &IdedExpr, arguments: &[IdedExpr]) -> u64 {
        let size = self.size(target);
        let number = |at: usize| arguments.get(at).and_then(literal);
        match name {
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
                size.saturating_mul(self.element(target))
            }
            "join" => {
                let separator = arguments.first().map_or(0, |part| self.size(part));
                let separators = separator.saturating_mul(size.saturating_sub(1));
                let elements = size.saturating_mul(self.element_size(target));
                let made = separators.saturating_add(elements);
                self.sizes.insert(id, made);
                scaled(made, TRAVERSAL)
            }
            "slice" => {
                let end = number(1).unwrap_or(size);
                self.made(id, end.saturating_sub(number(0).unwrap_or(0)), 1.0)
            }
            "flatten" => {
                let depth = match arguments {
                    [] => 1,
                    _ => number(0).unwrap_or(u64::MAX),
                };
                self.made(id, size, to_float(depth))
            }
            "reverse" => self.made(id, size, 1.0),
            "distinct" => self.made(id, size.saturating_mul(size), 2.0),
            "sort" => self.sorted(id, target, size),
            "@sortByAssociatedKeys" => match arguments.first() {
                Some(keys) => self.sorted(id, keys, self.size(keys)),
                None => 1,
            },
            _ => 1,
        }
    }

    fn of_value(&mut self, id: u64, name: &str, target: &IdedExpr, arguments: &[IdedExpr]) -> u64 {
        let size = self.size(target);
        let first = arguments.first().map_or(0, |part| self.size(part));
        match name {
            "startsWith" | "endsWith" => scaled(first, TRAVERSAL),
            "matches" => matching(size, first),
            "contains" => scaled(size, TRAVERSAL).saturating_mul(scaled(first, TRAVERSAL)),
            "find" | "findAll" => {
                self.sizes.insert(id, size);
                matching(size, first)
            }
            "format" | "indexOf" | "lastIndexOf" => scaled(size, TRAVERSAL),
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                self.sizes.insert(id, size);
                scaled(size, TRAVERSAL)
            }
            "replace" => {
                let with = arguments.get(1).map_or(0, |part| self.size(part));
                let least = arguments.first().map_or(0, |part| self.least(part));
                self.sizes.insert(id, replaced(size, least, with));
                scaled(size, 2.0 * TRAVERSAL)
            }
            "split" => {
                let most = arguments.get(1).and_then(literal);
                self.sizes.insert(id, most.unwrap_or(size));
                scaled(size, 2.0 * TRAVERSAL)
            }
            "containsIP" | "containsCIDR" => {
                let is_text = arguments
                    .first()
                    .is_some_and(|part| self.is(part, |of| *of == Type::String));
                let masked = if name == "containsCIDR" { 3 } else { 0 };
                let parsed = if is_text { scaled(first, TRAVERSAL) } else { 0 };
                parsed.saturating_add(4 + masked)
            }
            "validate" => scaled(scaled(first, TRAVERSAL), PATTERN_OF_FORMATS * PATTERN),
            _ => 1,
        }
    }

    /// Returns the cost of making a list of this size, and keeps the size.
    fn made(&mut self, id: u64, size: u64, factor: f64) -> u64 {
        self.sizes.insert(id, size);
        scaled(size, factor).saturating_add(1 + LIST)
    }

    /// Returns the cost of comparing all keys with each other.
    fn sorted(&mut self, id: u64, keys: &IdedExpr, size: u64) -> u64 {
        let is_text = self.is(
            keys,
            |of| matches!(of, Type::List(of) if matches!(**of, Type::String | Type::Bytes)),
        );
        let factor = if is_text { 2.0 + TRAVERSAL } else { 2.0 };
        self.made(id, size.saturating_mul(size), factor)
    }

    /// Returns the least size of a part's value.
    fn least(&self, part: &IdedExpr) -> u64 {
        match &part.expr {
            Expr::Literal(_) => self.size(part),
            _ => 0,
        }
    }

    /// Returns the cost of reading one element.
    fn element(&self, list: &IdedExpr) -> u64 {
        let is_text = self.is(
            list,
            |of| matches!(of, Type::List(of) if matches!(**of, Type::String | Type::Bytes)),
        );
        if is_text {
            scaled(self.element_size(list), TRAVERSAL).saturating_add(1)
        } else {
            1
        }
    }

    fn element_size(&self, list: &IdedExpr) -> u64 {
        let shape = self.shapes.get(&list.id);
        let element = shape.and_then(|shape| shape.element.as_deref());
        element.map_or(u64::MAX, |element| element.max)
    }
}

/// Returns a whole number that is written in the expression; 0 for a negative one.
fn literal(part: &IdedExpr) -> Option<u64> {
    match &part.expr {
        Expr::Literal(LiteralValue::Int(number)) => {
            Some(u64::try_from(*number.inner()).unwrap_or(0))
        }
        _ => None,
    }
}

/// Returns the largest size of a text after a replacement of texts of at least `least` units.
fn replaced(size: u64, least: u64, with: u64) -> u64 {
    match least {
        0 => size
            .saturating_add(1)
            .saturating_mul(with)
            .saturating_add(size),
        least if with <= least => size,
        least => size.div_ceil(least).saturating_mul(with),
    }
}

/// Returns the cost of matching a text with a pattern, given their lengths.
fn matching(text: u64, pattern: u64) -> u64 {
    scaled(text.saturating_add(1), TRAVERSAL).saturating_mul(scaled(pattern, PATTERN))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the reference computes in doubles"
)]
fn to_float(number: u64) -> f64 {
    number as f64
}
