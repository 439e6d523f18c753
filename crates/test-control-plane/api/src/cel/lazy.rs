//! Objects whose fields are computed when an expression first reads them.
//!
//! Upstream: `k8s.io/apiserver/pkg/cel/lazy`

use std::fmt::Debug;
use std::sync::Arc;

use cel::ExecutionError;
use cel::common::traits::Indexer;
use cel::common::types::{CelString, DYN_TYPE, Type};
use cel::common::value::{CowVal, Val};

use super::values::Value;

/// Computes the fields of an object.
pub(crate) trait Members: Debug + Send + Sync {
    /// Returns a field, or the text of an error; `None` if there is no such field.
    fn member(&self, name: &str) -> Option<Result<&Value, String>>;
}

/// Returns an object with these fields.
pub(crate) fn lazy(members: Arc<dyn Members>) -> Value {
    Box::new(Lazy(members))
}

#[derive(Clone, Debug)]
struct Lazy(Arc<dyn Members>);

impl Val for Lazy {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        &DYN_TYPE
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }
}

impl Indexer for Lazy {
    fn get<'b, 'v>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let name = key
            .downcast_ref::<CelString<'_>>()
            .map_or("", CelString::inner);
        match self.0.member(name) {
            Some(Ok(value)) => Ok(CowVal::Borrowed(value.as_ref())),
            Some(Err(text)) => Err(ExecutionError::function_error("variables", text)),
            None => Err(ExecutionError::no_such_key(name)),
        }
    }

    fn steal<'v>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(key).map(CowVal::into_owned)
    }
}
