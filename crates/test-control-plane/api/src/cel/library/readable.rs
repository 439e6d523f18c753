//! The check of a value that an expression reads.

use cel::common::types::DYN_TYPE;
use cel::common::value::CowVal;
use cel::{DeclarationError, Env, ExecutionError};

use crate::cel::unreadable::Unreadable;

/// The name of the function that returns its argument, or the error of an unreadable one.
pub(in crate::cel) const READ: &str = "@read";

pub(super) fn add(environment: &mut Env) -> Result<(), DeclarationError> {
    environment.add_overload(READ, "read", vec![DYN_TYPE], read)
}

fn read<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let Some(value) = arguments.into_iter().next() else {
        return Err(ExecutionError::missing_argument_or_target());
    };
    match value.downcast_ref::<Unreadable>() {
        Some(Unreadable(error)) => Err(ExecutionError::function_error(READ, *error)),
        None => Ok(value),
    }
}
