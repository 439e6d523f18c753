//! Checks of literals, made once the types fit.
//!
//! Upstream: `ValidateDurationLiterals`, `ValidateTimestampLiterals`, `ValidateRegexLiterals` and
//! `ValidateHomogeneousAggregateLiterals` of cel-go

mod formats;

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};

use super::check::{Fault, Types};
use super::environment::has_value;
use super::types::Type;
use crate::go::pattern;

/// Adds the faults of all literals in an expression.
pub(super) fn check(root: &IdedExpr, types: &Types, faults: &mut Vec<Fault>) {
    arguments(root, faults);
    aggregates(root, types, faults);
    formats(root, types, faults);
}

fn formats(part: &IdedExpr, types: &Types, faults: &mut Vec<Fault>) {
    formats::check(part, types, faults);
    each_inner(part, &mut |inner| formats(inner, types, faults));
}

/// Checks the texts that functions read as something else.
fn arguments(part: &IdedExpr, faults: &mut Vec<Fault>) {
    if let Expr::Call(call) = &part.expr {
        let name = call.func_name.as_str();
        let argument = match (name, call.args.as_slice(), call.target.is_some()) {
            ("duration" | "timestamp", [argument], false) => Some(argument),
            ("matches", [pattern], true) | ("matches", [_, pattern], false) => Some(pattern),
            _ => None,
        };
        if let Some(argument) = argument
            && let Expr::Literal(LiteralValue::String(text)) = &argument.expr
            && !is_valid(part, name, text.inner())
        {
            faults.push(Fault {
                id: argument.id,
                text: format!("invalid {name} argument"),
            });
        }
    }
    each_inner(part, &mut |inner| arguments(inner, faults));
}

/// Checks that the elements of lists and maps have one type, except for those to format.
fn aggregates(part: &IdedExpr, types: &Types, faults: &mut Vec<Fault>) {
    match &part.expr {
        Expr::Call(call) if call.func_name == "format" => return,
        Expr::List(list) => {
            let parts = list.elements.iter().enumerate();
            let parts = parts.map(|(index, part)| (part, list.optional_indices.contains(&index)));
            faults.extend(other_types(parts, types).into_iter().take(1));
        }
        Expr::Map(map) => {
            let entries = map.entries.iter().filter_map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => Some(entry),
                EntryExpr::StructField(_) => None,
            });
            let keys = entries.clone().map(|entry| (&entry.key, false));
            faults.extend(other_types(keys, types));
            let values = entries.map(|entry| (&entry.value, entry.optional));
            faults.extend(other_types(values, types));
        }
        _ => {}
    }
    each_inner(part, &mut |inner| aggregates(inner, types, faults));
}

fn is_valid(call: &IdedExpr, function: &str, text: &str) -> bool {
    match function {
        "matches" => pattern::compile(text).is_ok(),
        _ => has_value(call),
    }
}

/// Returns the faults of elements that have another type than the first one.
fn other_types<'a>(parts: impl Iterator<Item = (&'a IdedExpr, bool)>, types: &Types) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut first: Option<Type> = None;
    for (part, is_optional) in parts {
        let found = match types.get(&part.id) {
            Some(Type::Optional(inner)) if is_optional => inner.as_ref().clone(),
            Some(found) => found.clone(),
            None => continue,
        };
        match &first {
            None => first = Some(found),
            Some(expected) if *expected == found => {}
            Some(expected) => faults.push(Fault {
                id: part.id,
                text: format!("expected type '{expected}' but found '{found}'"),
            }),
        }
    }
    faults
}

/// Calls `visit` for each part directly inside.
pub(super) fn each_inner<'a>(part: &'a IdedExpr, visit: &mut dyn FnMut(&'a IdedExpr)) {
    match &part.expr {
        Expr::Call(call) => {
            call.target.as_deref().into_iter().for_each(&mut *visit);
            call.args.iter().for_each(visit);
        }
        Expr::Select(select) => visit(&select.operand),
        Expr::List(list) => list.elements.iter().for_each(visit),
        Expr::Map(map) => {
            for entry in &map.entries {
                if let EntryExpr::MapEntry(entry) = &entry.expr {
                    visit(&entry.key);
                    visit(&entry.value);
                }
            }
        }
        Expr::Comprehension(of) => {
            for inner in [
                &of.iter_range,
                &of.accu_init,
                &of.loop_cond,
                &of.loop_step,
                &of.result,
            ] {
                visit(inner);
            }
        }
        Expr::Struct(made) => {
            for entry in &made.entries {
                if let EntryExpr::StructField(field) = &entry.expr {
                    visit(&field.value);
                }
            }
        }
        Expr::Literal(_) | Expr::Ident(_) | Expr::Unspecified => {}
    }
}
