//! Constants that upstream computes before the first evaluation.
//!
//! Upstream: `decOptimize` and `decRegexOptimizer` of cel-go, with the functions of
//! `k8s.io/apiserver/pkg/cel/library`

use std::sync::Arc;

use cel::Context;
use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};

use super::environment::ENVIRONMENT;
use super::failure::text_of;
use super::literals::each_inner;
use crate::go::pattern;

/// The functions that convert a value to another type.
const CONVERSIONS: [&str; 9] = [
    "bool",
    "bytes",
    "double",
    "dyn",
    "duration",
    "int",
    "string",
    "timestamp",
    "uint",
];

/// The functions whose second argument is a pattern; the first one may be the target.
const SEARCHES: [&str; 3] = ["find", "findAll", "matches"];

/// Checks that all constants in an expression have a value.
///
/// # Errors
///
/// Upstream's text about the first one that has none.
pub(super) fn check(part: &IdedExpr) -> Result<(), String> {
    let mut found = Ok(());
    each_inner(part, &mut |inner| {
        if found.is_ok() {
            found = check(inner);
        }
    });
    found?;
    if let Expr::Call(call) = &part.expr {
        if SEARCHES.contains(&call.func_name.as_str())
            && let Some(text) = pattern_of(call)
        {
            pattern::compile(text)?;
        }
        if is_conversion(call) {
            let context = Context::with_env(Arc::clone(&ENVIRONMENT));
            let found = cel::Value::resolve_val(part, &context);
            found.map_err(|error| text_of(&error))?;
        }
    }
    Ok(())
}

fn pattern_of(call: &CallExpr) -> Option<&str> {
    let mut arguments = call.target.as_deref().into_iter().chain(&call.args);
    match &arguments.nth(1)?.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

/// Returns true for the conversion of a constant.
fn is_conversion(call: &CallExpr) -> bool {
    call.target.is_none()
        && CONVERSIONS.contains(&call.func_name.as_str())
        && matches!(call.args.as_slice(), [only] if is_constant(only))
}

fn is_constant(part: &IdedExpr) -> bool {
    match &part.expr {
        Expr::Literal(_) => true,
        Expr::Call(call) => is_conversion(call),
        _ => false,
    }
}
