//! Estimated cost of an expression.
//!
//! Upstream: `coster` of cel-go, and `CostEstimator` of `k8s.io/apiserver`

mod estimate;
mod functions;

use estimate::{ACCESS, Estimate, LIST, MAP, TRAVERSAL, scaled};
use functions::function;

use std::collections::HashMap;

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, operators};

use super::check::{Types, qualified_name};
use super::literals::each_inner;
use super::names::without_dot;
use super::overloads;
use super::shape::{REQUEST_MAX, Scalar, Shape};
use super::types::Type;

/// Returns the largest cost of an expression about values of this shape.
pub(super) fn largest(expression: &IdedExpr, types: &Types, root: &Shape) -> u64 {
    let mut estimate = Estimate {
        types,
        root,
        key: &Shape::scalar(Scalar::Text, 2, 0),
        scope: Vec::new(),
        shapes: HashMap::new(),
        sizes: HashMap::new(),
    };
    cost(&mut estimate, expression)
}

fn cost<'a>(estimate: &mut Estimate<'a>, part: &'a IdedExpr) -> u64 {
    match &part.expr {
        Expr::Ident(name) => {
            let name = without_dot(name);
            let found = estimate
                .scope
                .iter()
                .rev()
                .find(|(known, _)| *known == name);
            if let Some(shape) = found.map_or(Some(estimate.root), |(_, shape)| *shape) {
                estimate.shapes.insert(part.id, shape);
            }
            ACCESS
        }
        Expr::Select(select) => {
            let operand = cost(estimate, &select.operand);
            let field = estimate.shapes.get(&select.operand.id).copied();
            let field = field.and_then(|shape| {
                let field = shape.fields.get(&select.field);
                field.or(shape.element.as_deref())
            });
            if let Some(field) = field {
                estimate.shapes.insert(part.id, field);
            }
            let has_members = matches!(
                estimate.types.get(&select.operand.id),
                Some(Type::Map(..) | Type::Object(_))
            );
            operand + u64::from(has_members && !select.test) * ACCESS
        }
        Expr::Call(of) => call(estimate, part.id, of),
        Expr::Comprehension(of) => comprehension(estimate, part.id, of),
        Expr::List(_) | Expr::Map(_) => {
            let mut sum = if matches!(part.expr, Expr::List(_)) {
                LIST
            } else {
                MAP
            };
            each_inner(part, &mut |inner| {
                sum = sum.saturating_add(cost(estimate, inner));
            });
            sum
        }
        Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => 0,
    }
}

fn call<'a>(estimate: &mut Estimate<'a>, id: u64, call: &'a CallExpr) -> u64 {
    let of_arguments: Vec<u64> = call.args.iter().map(|part| cost(estimate, part)).collect();
    let mut sum = of_arguments
        .iter()
        .fold(0u64, |sum, cost| sum.saturating_add(*cost));
    let target = call.target.as_deref();
    let target = target.filter(|target| !is_namespace(target, &call.func_name));
    if let Some(target) = target {
        sum = sum.saturating_add(cost(estimate, target));
    }
    let own = match (call.func_name.as_str(), call.args.as_slice()) {
        (operators::LOGICAL_AND | operators::LOGICAL_OR, _) => 0,
        (operators::CONDITIONAL, [_, one, other]) => {
            let size = estimate.size(one).max(estimate.size(other));
            estimate.sizes.insert(id, size);
            let [condition, one, other] = of_arguments.as_slice() else {
                return sum;
            };
            return condition.saturating_add(*one.max(other));
        }
        (operators::INDEX | operators::OPT_INDEX, [operand, _]) => {
            let shape = estimate.shapes.get(&operand.id).copied();
            if let Some(element) = shape.and_then(|shape| shape.element.as_deref()) {
                estimate.shapes.insert(id, element);
            }
            if let Expr::List(list) = &operand.expr {
                let sizes = list.elements.iter().map(|element| estimate.size(element));
                estimate.sizes.insert(id, sizes.max().unwrap_or(0));
            }
            1
        }
        (operators::ADD, [one, other]) => {
            let size = estimate.size(one).saturating_add(estimate.size(other));
            added(estimate, id, one, size)
        }
        (operators::IN, [_, list]) if estimate.is(list, |of| matches!(of, Type::List(_))) => {
            estimate.size(list)
        }
        (operators::EQUALS, [one, other])
            if estimate.types.get(&one.id) == estimate.types.get(&other.id)
                && let Some(size) = estimate.types.get(&one.id).and_then(size_of_opaque) =>
        {
            scaled(size, TRAVERSAL)
        }
        (operators::EQUALS | operators::NOT_EQUALS, [one, other]) => compared(estimate, one, other),
        (
            operators::LESS
            | operators::LESS_EQUALS
            | operators::GREATER
            | operators::GREATER_EQUALS,
            [one, other],
        ) => {
            let is_text = |part| estimate.is(part, |of| matches!(of, Type::String | Type::Bytes));
            let is_open = |part| estimate.is(part, Type::is_open);
            match (
                is_text(one) || is_text(other),
                is_open(one) || is_open(other),
            ) {
                (true, _) => compared(estimate, one, other),
                (false, true) => compared(estimate, one, other).max(1),
                (false, false) => 1,
            }
        }
        (name, arguments) => function(estimate, id, name, target, arguments),
    };
    sum.saturating_add(own)
}

/// The largest size of a named format.
///
/// Upstream: `MaxFormatSize`
const FORMAT: u64 = 64;

/// Returns the size of values of a library's own type where upstream compares them.
fn size_of_opaque(of: &Type) -> Option<u64> {
    match of {
        Type::Opaque("kubernetes.NamedFormat") => Some(FORMAT),
        Type::Opaque(
            "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver" | "kubernetes.URL",
        ) => Some(1),
        _ => None,
    }
}

/// Returns the cost of reading all units of two values.
fn compared(estimate: &Estimate<'_>, one: &IdedExpr, other: &IdedExpr) -> u64 {
    scaled(estimate.size(one).min(estimate.size(other)), TRAVERSAL)
}

/// Returns the cost of a sum, and keeps its size.
fn added(estimate: &mut Estimate<'_>, id: u64, one: &IdedExpr, size: u64) -> u64 {
    if estimate.is(one, |of| matches!(of, Type::String | Type::Bytes)) {
        estimate.sizes.insert(id, size);
        return scaled(size, TRAVERSAL);
    }
    if estimate.is(one, |of| matches!(of, Type::List(_))) {
        estimate.sizes.insert(id, size);
    }
    1
}

fn comprehension<'a>(estimate: &mut Estimate<'a>, id: u64, of: &'a ComprehensionExpr) -> u64 {
    let mut sum = cost(estimate, &of.iter_range);
    sum = sum.saturating_add(cost(estimate, &of.accu_init));
    let count = estimate.size(&of.iter_range);
    let range = estimate.shapes.get(&of.iter_range.id).copied();
    let is_map = estimate.is(&of.iter_range, |of| matches!(of, Type::Map(..)));
    // As in upstream, elements of a range that names no field have the root's shape.
    let element = match range {
        Some(range) => range.element.as_deref(),
        None => Some(estimate.root),
    };
    let outer = estimate.scope.len();
    let accumulated = estimate.shapes.get(&of.accu_init.id).copied();
    estimate
        .scope
        .push((&of.accu_var, accumulated.or(Some(estimate.root))));
    match (&of.iter_var2, is_map) {
        (Some(second), _) => {
            estimate.scope.push((&of.iter_var, Some(estimate.key)));
            estimate.scope.push((second, element));
        }
        (None, true) => estimate.scope.push((&of.iter_var, Some(estimate.key))),
        (None, false) => estimate.scope.push((&of.iter_var, element)),
    }
    let condition = cost(estimate, &of.loop_cond);
    let step = cost(estimate, &of.loop_step);
    let each = condition.saturating_add(step);
    estimate.scope.truncate(outer + 1);
    sum = sum.saturating_add(cost(estimate, &of.result));
    estimate.scope.truncate(outer);
    if matches!(of.accu_init.expr, Expr::List(_) | Expr::Map(_)) {
        estimate.sizes.insert(id, count.min(REQUEST_MAX));
    }
    sum.saturating_add(count.saturating_mul(each))
}

/// Returns true for the first part of a function's name, such as `sets` in `sets.contains`.
fn is_namespace(target: &IdedExpr, name: &str) -> bool {
    let prefix = qualified_name(target);
    prefix.is_some_and(|prefix| !overloads::named(&format!("{prefix}.{name}")).is_empty())
}
