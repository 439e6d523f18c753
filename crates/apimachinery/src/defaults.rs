//! Defaults that the API server gives to pods, claims and stateful sets.
//!
//! Each function works on the JSON of an object, whether Go encoded it or a person wrote it: absent
//! and null are the same, and so are zero values where Go's types cannot tell them from absent.
//! What has the wrong type is left as it is. Applying a function twice changes nothing more.
//!
//! Defaulting does not add what Go's encoder always writes (`resources: {}` of a container), and
//! does not canonicalise what has no default: [`crate::schema::normalize`] does.

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
