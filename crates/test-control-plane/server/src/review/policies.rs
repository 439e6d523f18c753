//! The review of a request by admission policies.

mod authorizer;
mod mutating;
mod params;
mod question;
mod validating;

pub(super) use mutating::mutate;
pub(super) use params::prepare;
pub(super) use question::meets_conditions;
pub(super) use validating::review;
