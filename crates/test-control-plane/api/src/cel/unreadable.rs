//! Values of the wrong type, which are errors once an expression reads them.
//!
//! Upstream: the errors of `UnstructuredToVal`

use std::any::Any;

use cel::common::types::Type;
use cel::common::value::{StaticVal, Val};

/// The text of the error of reading the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unreadable(pub(super) &'static str);

opaque!(Unreadable, TYPE, "@unreadable");
