//! What upstream finds before the first evaluation: wrong constants, and types without a value.
//!
//! Upstream: `decOptimize` and `decRegexOptimizer` of cel-go, with the functions of
//! `k8s.io/apiserver/pkg/cel/library`

use std::sync::Arc;

use cel::Context;
use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};

use super::check::qualified_name;
use super::environment::ENVIRONMENT;
use super::failure::text_of;
use super::literals::each_inner;
use super::objects;
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

/// Checks that all constants and names of types in an expression have a value.
///
/// # Errors
///
/// Upstream's text about the first one that has none.
pub(super) fn check(part: &IdedExpr) -> Result<(), String> {
    if let Some(name) = undefined_type(part, &[]) {
        return Err(format!("reference to undefined type: {name}"));
    }
    check_constants(part)
}

/// Returns the name of the first type that an expression reads as a value, of those without one.
///
/// Upstream: `planCheckedIdent` of cel-go
fn undefined_type(part: &IdedExpr, bound: &[&str]) -> Option<String> {
    if let Some(name) = qualified_name(part) {
        let first = name.split('.').next().unwrap_or_default();
        let is_undefined = objects::is_type(&name) && !bound.contains(&first);
        return is_undefined.then_some(name);
    }
    let mut inside = bound.to_vec();
    if let Expr::Comprehension(of) = &part.expr {
        inside.push(&of.iter_var);
        inside.extend(of.iter_var2.as_deref());
    }
    let mut found = None;
    each_inner(part, &mut |inner| {
        if found.is_none() {
            found = undefined_type(inner, &inside);
        }
    });
    found
}

fn check_constants(part: &IdedExpr) -> Result<(), String> {
    let mut found = Ok(());
    each_inner(part, &mut |inner| {
        if found.is_ok() {
            found = check_constants(inner);
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
