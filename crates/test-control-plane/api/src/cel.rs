//! Rules in the Common Expression Language: types, costs and evaluation.
//!
//! Parser, interpreter and the language's own functions come from the crate `cel`. This module adds
//! the reference's static checks with their texts, its estimates of costs, and Kubernetes' functions.
//!
//! Upstream: cel-go, and `k8s.io/apiserver/pkg/cel`

mod check;
mod cost;
mod display;
mod environment;
mod library;
mod literals;
mod lower;
mod overloads;
mod program;
mod shape;
#[cfg(test)]
mod tests;
mod types;
pub(crate) mod values;

pub(crate) use program::{Checked, Evaluation, Kind, LIMIT_EXCEEDED, Outcome, Program, Variables};
pub(crate) use shape::{REQUEST_MAX, Scalar, Shape};
