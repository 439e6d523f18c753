//! Defaults that the API server sets in pods, claims and stateful sets.
//!
//! Each function works on the JSON of an object, from Go's encoder or hand-written: null counts as
//! absent, and so does a zero value where Go's types can't distinguish the two. Values of the wrong
//! type stay unchanged. The functions are idempotent.
//!
//! Defaulting doesn't add what Go's encoder always writes (`resources: {}` of a container), and
//! doesn't canonicalise values without a default: [`crate::schema::normalize`] does.

mod claim;
mod container;
mod member;
mod pod;
mod stateful_set;
mod volume;

pub use self::claim::set_claim_defaults;
pub use self::pod::set_pod_defaults;
pub use self::pod::set_pod_template_defaults;
pub use self::stateful_set::set_stateful_set_defaults;

#[cfg(test)]
mod tests;
