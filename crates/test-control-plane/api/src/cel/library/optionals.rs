//! Functions of lists that return or take optional values.
//!
//! Upstream: `OptionalTypes` of cel-go, since version 2

use cel::common::types::{CelList, CelOptional, LIST_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError, add_overload};

use super::lists::list;

pub(super) fn add(environment: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(environment, fn unwrap: (CelList<'_>) -> Result<CelList<'_>>, name = "optional.unwrap")?;
    let mut add = |name: &str, function| {
        let id = format!("list_{name}");
        environment.add_member_overload(name, &id, LIST_TYPE, Vec::new(), function)
    };
    add("unwrapOpt", |arguments| {
        Ok(CowVal::owned(unwrap(list(&arguments)?)?))
    })?;
    add("first", |arguments| {
        let first = list(&arguments)?.inner().first();
        Ok(optional(first.map(|element| element.clone_as_boxed())))
    })?;
    add("last", |arguments| {
        let last = list(&arguments)?.inner().last();
        Ok(optional(last.map(|element| element.clone_as_boxed())))
    })
}

fn optional<'b, 'v>(element: Option<Box<dyn Val + 'v>>) -> CowVal<'b, 'v> {
    CowVal::owned(CelOptional::from(element))
}

/// Returns the values of the elements that have one.
fn unwrap<'v>(list: &CelList<'v>) -> Result<CelList<'v>, ExecutionError> {
    let mut found = Vec::new();
    for element in list.inner() {
        let Some(optional) = element.downcast_ref::<CelOptional<'v>>() else {
            let text = "value is not optional";
            return Err(ExecutionError::function_error("optional.unwrap", text));
        };
        found.extend(optional.option().map(Val::clone_as_boxed));
    }
    Ok(CelList::from(found))
}
