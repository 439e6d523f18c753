//! Values that are cheap to copy, and whose missing fields are named in errors.

use std::any::Any;
use std::sync::Arc;

use cel::ExecutionError;
use cel::common::traits::{
    Adder, Comparer, Container, Divider, Indexer, Iterable, Modder, Multiplier, Negator, Sizer,
    Subtractor, Zeroer,
};
use cel::common::types::{CelString, DYN_TYPE, Type};
use cel::common::value::{Builtin, BuiltinRef, CowVal, Val};

/// A shared value. A field of a plain value is a missing key, as in cel-go.
///
/// Upstream: `refQualify` of cel-go
#[derive(Clone, Debug)]
struct Handle(Arc<dyn Val>);

/// Returns a value that is cheap to copy.
pub(crate) fn shared(value: Box<dyn Val>) -> Box<dyn Val> {
    Box::new(Handle(Arc::from(value)))
}

/// Makes the accessors of a value those of the shared one.
macro_rules! delegated {
    ($($name:ident: $of:ident),*) => {$(
        fn $name<'b, 'v>(&'b self) -> Option<&'b (dyn $of + 'v)>
        where
            Self: 'v,
        {
            self.0.$name()
        }
    )*};
}

impl Val for Handle {
    fn get_type(&self) -> &Type {
        self.0.get_type()
    }

    fn cel_type() -> &'static Type {
        &DYN_TYPE
    }

    delegated!(
        as_adder: Adder,
        as_divider: Divider,
        as_iterable: Iterable,
        as_modder: Modder,
        as_multiplier: Multiplier,
        as_negator: Negator,
        as_subtractor: Subtractor
    );

    fn as_comparer(&self) -> Option<&dyn Comparer> {
        self.0.as_comparer()
    }

    fn as_container(&self) -> Option<&dyn Container> {
        self.0.as_container()
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn into_indexer<'v>(self: Box<Self>) -> Option<Box<dyn Indexer + 'v>>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        self.0.as_sizer()
    }

    fn as_zeroer(&self) -> Option<&dyn Zeroer> {
        self.0.as_zeroer()
    }

    fn equals(&self, other: &dyn Val) -> bool {
        self.0.equals(other)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        self.0.as_any()
    }

    fn as_builtin<'b, 'v>(&'b self) -> BuiltinRef<'b, 'v>
    where
        Self: 'v,
    {
        self.0.as_builtin()
    }

    fn into_builtin<'v>(self: Box<Self>) -> Option<Builtin<'v>>
    where
        Self: 'v,
    {
        self.0.clone_as_boxed().into_builtin()
    }
}

impl Indexer for Handle {
    fn get<'b, 'v>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        match (self.0.as_indexer(), key.downcast_ref::<CelString<'_>>()) {
            (Some(inner), _) => inner.get(key),
            (None, Some(name)) => Err(ExecutionError::no_such_key(name.inner())),
            (None, None) => Err(ExecutionError::no_such_overload("_[_]", Vec::new())),
        }
    }

    fn steal<'v>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(key).map(CowVal::into_owned)
    }
}
