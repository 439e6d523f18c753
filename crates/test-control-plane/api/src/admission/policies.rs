//! Admission policies: their expressions, compiled once, and their decisions about a request.
//!
//! The room has no state and knows no store: a policy is compiled from its object, and evaluated
//! with the inputs of one request.
//!
//! Upstream: `k8s.io/apiserver/pkg/admission/plugin/{cel,policy}`

mod definition;
mod environment;
mod evaluation;
mod expression;
mod inputs;
mod match_conditions;
mod mutating;
#[cfg(test)]
mod tests;
mod type_check;
mod validating;

pub use crate::cel::{About, Authorizer, Decision as AuthorizerDecision, Question, Resource};
pub(crate) use environment::{Authorizers, Environment};
pub(crate) use expression::{CompileError, Expression, Returns};
pub use inputs::Inputs;
pub(crate) use match_conditions::{Match, MatchConditions};
pub use mutating::{Change, MutatingPolicy};
pub use type_check::{ExpressionWarning, KnownKinds, type_check};
pub use validating::{AuditAnnotation, Decision, ValidatingPolicy, Verdict};
