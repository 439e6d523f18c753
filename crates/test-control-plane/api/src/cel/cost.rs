//! Estimated cost of an expression.
//!
//! Upstream: `coster` of cel-go, and `CostEstimator` of `k8s.io/apiserver`

mod functions;

use std::collections::HashMap;

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, operators};

use super::check::{Types, qualified_name};
use super::literals::each_inner;
use super::overloads;
use super::shape::{REQUEST_MAX, Scalar, Shape};
use super::types::Type;

/// The cost of a name or a member.
const ACCESS: u64 = 1;

/// The cost of a list, or a map, besides its elements.
const LIST: u64 = 10;
const MAP: u64 = 30;

/// The cost of one unit of a text's length.
const TRAVERSAL: f64 = 0.1;

/// The estimate of an expression's parts.
struct Estimate<'a> {
    types: &'a Types,
    /// The shape of the value. As in the reference, that of all names but loop variables.
    root: &'a Shape,
    /// The shape of a map's keys, which count as empty.
    key: &'a Shape,
    /// Names with their shapes, the innermost last.
    scope: Vec<(&'a str, Option<&'a Shape>)>,
    /// The shapes of parts that name members.
    shapes: HashMap<u64, &'a Shape>,
    /// The sizes of parts that are made.
    sizes: HashMap<u64, u64>,
}

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
    estimate.cost(expression)
}

impl<'a> Estimate<'a> {
    fn cost(&mut self, part: &'a IdedExpr) -> u64 {
        match &part.expr {
            Expr::Ident(name) => {
                let found = self.scope.iter().rev().find(|(known, _)| known == name);
                if let Some(shape) = found.map_or(Some(self.root), |(_, shape)| *shape) {
                    self.shapes.insert(part.id, shape);
                }
                ACCESS
            }
            Expr::Select(select) => {
                let operand = self.cost(&select.operand);
                let field = self.shapes.get(&select.operand.id).copied();
                let field = field.and_then(|shape| {
                    let field = shape.fields.get(&select.field);
                    field.or(shape.element.as_deref())
                });
                if let Some(field) = field {
                    self.shapes.insert(part.id, field);
                }
                let has_members = matches!(
                    self.types.get(&select.operand.id),
                    Some(Type::Map(..) | Type::Object(_))
                );
                operand + u64::from(has_members && !select.test) * ACCESS
            }
            Expr::Call(call) => self.call(part.id, call),
            Expr::Comprehension(of) => self.comprehension(part.id, of),
            Expr::List(_) | Expr::Map(_) => {
                let mut sum = if matches!(part.expr, Expr::List(_)) {
                    LIST
                } else {
                    MAP
                };
                each_inner(part, &mut |inner| {
                    sum = sum.saturating_add(self.cost(inner));
                });
                sum
            }
            Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => 0,
        }
    }

    /// Returns the largest size of a part's value.
    fn size(&self, part: &IdedExpr) -> u64 {
        if let Some(size) = self.sizes.get(&part.id) {
            return *size;
        }
        match &part.expr {
            Expr::Literal(LiteralValue::String(text)) => {
                return text.inner().chars().count() as u64;
            }
            Expr::Literal(LiteralValue::Bytes(bytes)) => return bytes.inner().len() as u64,
            Expr::Literal(_) => return 1,
            Expr::List(list) => return list.elements.len() as u64,
            Expr::Map(map) => return map.entries.len() as u64,
            _ => {}
        }
        if let Some(shape) = self.shapes.get(&part.id) {
            return shape.max;
        }
        if self.types.get(&part.id).is_some_and(Type::is_scalar) {
            1
        } else {
            u64::MAX
        }
    }

    fn is(&self, part: &IdedExpr, test: impl Fn(&Type) -> bool) -> bool {
        self.types.get(&part.id).is_some_and(test)
    }

    fn call(&mut self, id: u64, call: &'a CallExpr) -> u64 {
        let of_arguments: Vec<u64> = call.args.iter().map(|part| self.cost(part)).collect();
        let mut sum = of_arguments
            .iter()
            .fold(0u64, |sum, cost| sum.saturating_add(*cost));
        let target = call.target.as_deref();
        let target = target.filter(|target| !is_namespace(target, &call.func_name));
        if let Some(target) = target {
            sum = sum.saturating_add(self.cost(target));
        }
        let own = match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::LOGICAL_AND | operators::LOGICAL_OR, _) => 0,
            (operators::CONDITIONAL, [_, one, other]) => {
                let size = self.size(one).max(self.size(other));
                self.sizes.insert(id, size);
                let [condition, one, other] = of_arguments.as_slice() else {
                    return sum;
                };
                return condition.saturating_add(*one.max(other));
            }
            (operators::INDEX | operators::OPT_INDEX, [operand, _]) => {
                let shape = self.shapes.get(&operand.id).copied();
                if let Some(element) = shape.and_then(|shape| shape.element.as_deref()) {
                    self.shapes.insert(id, element);
                }
                if let Expr::List(list) = &operand.expr {
                    let sizes = list.elements.iter().map(|element| self.size(element));
                    self.sizes.insert(id, sizes.max().unwrap_or(0));
                }
                1
            }
            (operators::ADD, [one, other]) => {
                let size = self.size(one).saturating_add(self.size(other));
                self.added(id, one, size)
            }
            (operators::IN, [_, list]) if self.is(list, |of| matches!(of, Type::List(_))) => {
                self.size(list)
            }
            (operators::EQUALS | operators::NOT_EQUALS, [one, other]) => self.compared(one, other),
            (
                operators::LESS
                | operators::LESS_EQUALS
                | operators::GREATER
                | operators::GREATER_EQUALS,
                [one, other],
            ) => {
                let is_text = |part| self.is(part, |of| matches!(of, Type::String | Type::Bytes));
                let is_open = |part| self.is(part, Type::is_open);
                match (
                    is_text(one) || is_text(other),
                    is_open(one) || is_open(other),
                ) {
                    (true, _) => self.compared(one, other),
                    (false, true) => self.compared(one, other).max(1),
                    (false, false) => 1,
                }
            }
            (name, arguments) => self.function(id, name, target, arguments),
        };
        sum.saturating_add(own)
    }

    /// Returns the cost of reading all units of two values.
    fn compared(&self, one: &IdedExpr, other: &IdedExpr) -> u64 {
        scaled(self.size(one).min(self.size(other)), TRAVERSAL)
    }

    /// Returns the cost of a sum, and keeps its size.
    fn added(&mut self, id: u64, one: &IdedExpr, size: u64) -> u64 {
        if self.is(one, |of| matches!(of, Type::String | Type::Bytes)) {
            self.sizes.insert(id, size);
            return scaled(size, TRAVERSAL);
        }
        if self.is(one, |of| matches!(of, Type::List(_))) {
            self.sizes.insert(id, size);
        }
        1
    }

    fn comprehension(&mut self, id: u64, of: &'a ComprehensionExpr) -> u64 {
        let mut sum = self.cost(&of.iter_range);
        sum = sum.saturating_add(self.cost(&of.accu_init));
        let count = self.size(&of.iter_range);
        let range = self.shapes.get(&of.iter_range.id).copied();
        let is_map = self.is(&of.iter_range, |of| matches!(of, Type::Map(..)));
        // As in the reference, elements of a range that names no member have the root's shape.
        let element = match range {
            Some(range) => range.element.as_deref(),
            None => Some(self.root),
        };
        let outer = self.scope.len();
        let accumulated = self.shapes.get(&of.accu_init.id).copied();
        self.scope
            .push((&of.accu_var, accumulated.or(Some(self.root))));
        match (&of.iter_var2, is_map) {
            (Some(second), _) => {
                self.scope.push((&of.iter_var, Some(self.key)));
                self.scope.push((second, element));
            }
            (None, true) => self.scope.push((&of.iter_var, Some(self.key))),
            (None, false) => self.scope.push((&of.iter_var, element)),
        }
        let condition = self.cost(&of.loop_cond);
        let step = self.cost(&of.loop_step);
        let each = condition.saturating_add(step);
        self.scope.truncate(outer + 1);
        sum = sum.saturating_add(self.cost(&of.result));
        self.scope.truncate(outer);
        if matches!(of.accu_init.expr, Expr::List(_) | Expr::Map(_)) {
            self.sizes.insert(id, count.min(REQUEST_MAX));
        }
        sum.saturating_add(count.saturating_mul(each))
    }
}

/// Returns true for the first part of a function's name, such as `sets` in `sets.contains`.
fn is_namespace(target: &IdedExpr, name: &str) -> bool {
    let prefix = qualified_name(target);
    prefix.is_some_and(|prefix| !overloads::named(&format!("{prefix}.{name}")).is_empty())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "as the reference, in doubles that saturate"
)]
fn scaled(size: u64, by: f64) -> u64 {
    (size as f64 * by).ceil() as u64
}
