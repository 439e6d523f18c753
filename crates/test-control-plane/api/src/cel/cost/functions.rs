//! Costs of functions.
//!
//! Upstream: `functionCost` of cel-go, `EstimateCallCost` of `k8s.io/apiserver`, and the estimates of
//! the extensions for lists and sets

use cel::common::ast::{Expr, IdedExpr, LiteralValue};

use super::estimate::{Estimate, LIST, TRAVERSAL, scaled};
use crate::cel::types::Type;

/// The cost of one unit of a pattern's length.
const PATTERN: f64 = 0.25;

/// The size of the largest pattern of a named format.
const PATTERN_OF_FORMATS: f64 = 128.0;

/// Returns the cost of a function besides its arguments.
pub(super) fn function(
    estimate: &mut Estimate<'_>,
    id: u64,
    name: &str,
    target: Option<&IdedExpr>,
    arguments: &[IdedExpr],
) -> u64 {
    match target {
        Some(target) if estimate.is(target, |of| matches!(of, Type::List(_))) => {
            of_list(estimate, id, name, target, arguments)
        }
        Some(target) => of_value(estimate, id, name, target, arguments),
        None => of_arguments(estimate, id, name, arguments),
    }
}

fn of_arguments(estimate: &mut Estimate<'_>, id: u64, name: &str, arguments: &[IdedExpr]) -> u64 {
    let sizes: Vec<u64> = arguments.iter().map(|part| estimate.size(part)).collect();
    let first = sizes.first().copied().unwrap_or(0);
    let is = |estimate: &Estimate<'_>, wanted: &Type| {
        let first = arguments.first();
        first.is_some_and(|part| estimate.is(part, |of| of == wanted))
    };
    match (name, sizes.as_slice()) {
        ("bytes", _) if is(estimate, &Type::String) => {
            estimate.sizes.insert(id, first.saturating_mul(4));
            scaled(first, TRAVERSAL)
        }
        ("string", _) if is(estimate, &Type::Bytes) => {
            estimate.sizes.insert(id, first);
            scaled(first, TRAVERSAL)
        }
        ("quote", _) => {
            let made = first.saturating_mul(2).saturating_add(2);
            estimate.sizes.insert(id, made);
            scaled(first, TRAVERSAL)
        }
        ("url", _) => scaled(first, TRAVERSAL),
        ("range", _) => {
            let count = arguments.first().and_then(literal);
            made(estimate, id, count.unwrap_or(u64::MAX), 1.0)
        }
        ("contains" | "intersects", [one, other]) => one.saturating_mul(*other).saturating_add(1),
        ("equivalent", [one, other]) => {
            let pairs = one.saturating_mul(*other);
            pairs.saturating_mul(2).saturating_add(1)
        }
        _ => 1,
    }
}

fn of_list(
    estimate: &mut Estimate<'_>,
    id: u64,
    name: &str,
    target: &IdedExpr,
    arguments: &[IdedExpr],
) -> u64 {
    let size = estimate.size(target);
    let number = |at: usize| arguments.get(at).and_then(literal);
    match name {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
            size.saturating_mul(element(estimate, target))
        }
        "join" => {
            let separator = arguments.first().map_or(0, |part| estimate.size(part));
            let separators = separator.saturating_mul(size.saturating_sub(1));
            let elements = size.saturating_mul(element_size(estimate, target));
            let made = separators.saturating_add(elements);
            estimate.sizes.insert(id, made);
            scaled(made, TRAVERSAL)
        }
        "slice" => {
            let end = number(1).unwrap_or(size);
            made(
                estimate,
                id,
                end.saturating_sub(number(0).unwrap_or(0)),
                1.0,
            )
        }
        "flatten" => {
            let depth = match arguments {
                [] => 1,
                _ => number(0).unwrap_or(u64::MAX),
            };
            made(estimate, id, size, to_float(depth))
        }
        "reverse" => made(estimate, id, size, 1.0),
        "distinct" => made(estimate, id, size.saturating_mul(size), 2.0),
        "sort" => sorted(estimate, id, target, size),
        "@sortByAssociatedKeys" => match arguments.first() {
            Some(keys) => sorted(estimate, id, keys, estimate.size(keys)),
            None => 1,
        },
        _ => 1,
    }
}

fn of_value(
    estimate: &mut Estimate<'_>,
    id: u64,
    name: &str,
    target: &IdedExpr,
    arguments: &[IdedExpr],
) -> u64 {
    let size = estimate.size(target);
    let first = arguments.first().map_or(0, |part| estimate.size(part));
    match name {
        "startsWith" | "endsWith" => scaled(first, TRAVERSAL),
        "matches" => matching(size, first),
        "contains" => scaled(size, TRAVERSAL).saturating_mul(scaled(first, TRAVERSAL)),
        "find" | "findAll" => {
            estimate.sizes.insert(id, size);
            matching(size, first)
        }
        "format" | "indexOf" | "lastIndexOf" => scaled(size, TRAVERSAL),
        "lowerAscii" | "upperAscii" | "substring" | "trim" => {
            estimate.sizes.insert(id, size);
            scaled(size, TRAVERSAL)
        }
        "replace" => {
            let with = arguments.get(1).map_or(0, |part| estimate.size(part));
            let least = arguments.first().map_or(0, |part| least(estimate, part));
            estimate.sizes.insert(id, replaced(size, least, with));
            scaled(size, 2.0 * TRAVERSAL)
        }
        "split" => {
            let most = arguments.get(1).and_then(literal);
            estimate.sizes.insert(id, most.unwrap_or(size));
            scaled(size, 2.0 * TRAVERSAL)
        }
        "containsIP" | "containsCIDR" => {
            let is_text = arguments
                .first()
                .is_some_and(|part| estimate.is(part, |of| *of == Type::String));
            let masked = if name == "containsCIDR" { 3 } else { 0 };
            let parsed = if is_text { scaled(first, TRAVERSAL) } else { 0 };
            parsed.saturating_add(4 + masked)
        }
        "validate" => scaled(scaled(first, TRAVERSAL), PATTERN_OF_FORMATS * PATTERN),
        _ => 1,
    }
}

/// Returns the cost of making a list of this size, and keeps the size.
fn made(estimate: &mut Estimate<'_>, id: u64, size: u64, factor: f64) -> u64 {
    estimate.sizes.insert(id, size);
    scaled(size, factor).saturating_add(1 + LIST)
}

/// Returns the cost of comparing all keys with each other.
fn sorted(estimate: &mut Estimate<'_>, id: u64, keys: &IdedExpr, size: u64) -> u64 {
    let is_text = estimate.is(
        keys,
        |of| matches!(of, Type::List(of) if matches!(**of, Type::String | Type::Bytes)),
    );
    let factor = if is_text { 2.0 + TRAVERSAL } else { 2.0 };
    made(estimate, id, size.saturating_mul(size), factor)
}

/// Returns the least size of a part's value.
fn least(estimate: &Estimate<'_>, part: &IdedExpr) -> u64 {
    match &part.expr {
        Expr::Literal(_) => estimate.size(part),
        _ => 0,
    }
}

/// Returns the cost of reading one element.
fn element(estimate: &Estimate<'_>, list: &IdedExpr) -> u64 {
    let is_text = estimate.is(
        list,
        |of| matches!(of, Type::List(of) if matches!(**of, Type::String | Type::Bytes)),
    );
    if is_text {
        scaled(element_size(estimate, list), TRAVERSAL).saturating_add(1)
    } else {
        1
    }
}

fn element_size(estimate: &Estimate<'_>, list: &IdedExpr) -> u64 {
    let shape = estimate.shapes.get(&list.id);
    let element = shape.and_then(|shape| shape.element.as_deref());
    element.map_or(u64::MAX, |element| element.max)
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

#[expect(clippy::cast_precision_loss, reason = "upstream computes in doubles")]
fn to_float(number: u64) -> f64 {
    number as f64
}
