//! Kubernetes' own functions.

mod address;
mod lists;
mod quantity;
mod regex;
mod sets;

use cel::{DeclarationError, Env};

/// Adds all functions.
pub(super) fn add(environment: &mut Env) -> Result<(), DeclarationError> {
    address::add(environment)?;
    lists::add(environment)?;
    quantity::add(environment)?;
    regex::add(environment)?;
    sets::add(environment)
}
