//! Rules of pods and their templates.
//!
//! Upstream: `ValidatePodSpec`.

pub(crate) mod annotations;
pub(super) mod containers;
pub(super) mod env;
pub(super) mod projections;
pub(super) mod resources;
pub(super) mod scheduling;
pub(super) mod security;
pub(super) mod spec;
pub(super) mod status;
#[cfg(test)]
mod tests;
pub(super) mod update;
pub(super) mod volumes;
