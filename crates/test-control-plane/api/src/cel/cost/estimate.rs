//! The estimate of an expression's parts.

use std::collections::HashMap;

use cel::common::ast::{Expr, IdedExpr, LiteralValue};

use crate::cel::check::Types;
use crate::cel::shape::Shape;
use crate::cel::types::Type;

/// The cost of a name or a field.
pub(super) const ACCESS: u64 = 1;

/// The cost of a list, or a map, besides its elements.
pub(super) const LIST: u64 = 10;
pub(super) const MAP: u64 = 30;

/// The cost of one unit of a text's length.
pub(super) const TRAVERSAL: f64 = 0.1;

/// The estimate of an expression's parts.
pub(super) struct Estimate<'a> {
    pub(super) types: &'a Types,
    /// The shape of the value. As in upstream, that of all names but loop variables.
    pub(super) root: &'a Shape,
    /// The shape of a map's keys, which count as empty.
    pub(super) key: &'a Shape,
    /// Names with their shapes, the innermost last.
    pub(super) scope: Vec<(&'a str, Option<&'a Shape>)>,
    /// The shapes of parts that name fields.
    pub(super) shapes: HashMap<u64, &'a Shape>,
    /// The sizes of parts that are made.
    pub(super) sizes: HashMap<u64, u64>,
}

impl Estimate<'_> {
    /// Returns the largest size of a part's value.
    pub(super) fn size(&self, part: &IdedExpr) -> u64 {
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

    pub(super) fn is(&self, part: &IdedExpr, test: impl Fn(&Type) -> bool) -> bool {
        self.types.get(&part.id).is_some_and(test)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "as upstream, in doubles that saturate"
)]
pub(super) fn scaled(size: u64, by: f64) -> u64 {
    (size as f64 * by).ceil() as u64
}
