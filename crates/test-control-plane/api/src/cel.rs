//! Rules in the Common Expression Language: types, costs and evaluation.
//!
//! Parser, interpreter and the language's own functions come from the crate `cel`. This module adds
//! upstream's static checks with their texts, its estimates of costs, and Kubernetes' functions.
//!
//! Upstream: cel-go, and `k8s.io/apiserver/pkg/cel`

/// Makes a type a value that only its own functions read.
macro_rules! opaque {
    ($of:ty, $name:ident, $shown:literal) => {
        static $name: Type = Type::new_unspecified_type($shown);

        impl Val for $of {
            fn get_type(&self) -> &Type {
                &$name
            }

            fn cel_type() -> &'static Type {
                &$name
            }

            fn equals(&self, other: &dyn Val) -> bool {
                other.downcast_ref::<Self>() == Some(self)
            }

            fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
                Box::new(self.clone())
            }

            fn as_any(&self) -> Option<&dyn Any> {
                Some(self)
            }
        }

        impl StaticVal for $of {}
    };
}

mod authorizer;
mod check;
mod cost;
mod display;
mod environment;
mod failure;
mod handle;
mod lazy;
mod library;
mod literals;
mod lower;
mod names;
pub(crate) mod objects;
mod overloads;
mod plan;
mod program;
mod scope;
mod shape;
#[cfg(test)]
mod tests;
mod types;
mod unreadable;
pub(crate) mod values;

pub use authorizer::{About, Authorizer, Decision, Question, Resource};
pub(crate) use environment::{duration, timestamp};
pub(crate) use handle::shared;
pub(crate) use lazy::{Members, lazy};
pub(crate) use names::{escape, escape_reserved};
pub(crate) use program::{Checked, Evaluation, Kind, LIMIT_EXCEEDED, Outcome, Program, Variables};
pub(crate) use scope::Scope;
pub(crate) use shape::{REQUEST_MAX, Scalar, Shape};
pub(crate) use types::Type;
