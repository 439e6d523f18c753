//! The function `dyn`: a field of a plain value is a missing key.
//!
//! Upstream: `refQualify` of cel-go

use cel::common::types::{
    CelBool, CelBytes, CelDouble, CelDuration, CelInt, CelNull, CelString, CelTimestamp, CelUInt,
    DYN_TYPE,
};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

use crate::cel::shared;
use crate::cel::values::{Value, text};

/// The name of the function that replaces `dyn`.
pub(in crate::cel) const OPEN: &str = "@dyn";

pub(super) fn add(environment: &mut Env) -> Result<(), DeclarationError> {
    environment.add_overload(OPEN, "dyn", vec![DYN_TYPE], open)
}

fn open<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let Some(value) = arguments.into_iter().next() else {
        return Err(ExecutionError::missing_argument_or_target());
    };
    Ok(match plain(value.as_ref()) {
        Some(found) => CowVal::Owned(shared(found)),
        None => value,
    })
}

/// Returns a copy of a value without parts.
fn plain(value: &dyn Val) -> Option<Value> {
    macro_rules! copy_of {
        ($($of:ty),*) => {$(
            if let Some(found) = value.downcast_ref::<$of>() {
                return Some(found.clone_as_boxed());
            }
        )*};
    }
    copy_of!(
        CelNull,
        CelBool,
        CelInt,
        CelUInt,
        CelDouble,
        CelDuration,
        CelTimestamp
    );
    if let Some(found) = value.downcast_ref::<CelBytes<'_>>() {
        return Some(Box::new(CelBytes::from(found.inner().to_vec())));
    }
    let found = value.downcast_ref::<CelString<'_>>()?;
    Some(text(found.inner()))
}
