//! Kubernetes' own functions.

mod address;
pub(super) mod format;
mod lists;
pub(super) mod meter;
pub(super) mod open;
mod optionals;
pub(super) mod places;
mod quantity;
pub(super) mod readable;
pub(super) mod regex;
mod semver;
mod sets;
pub(super) mod two_variables;
mod url;

use cel::{DeclarationError, Env};

use super::{authorizer, objects};

/// Adds all functions.
pub(super) fn add(environment: &mut Env) -> Result<(), DeclarationError> {
    address::add(environment)?;
    authorizer::add(environment)?;
    format::add(environment)?;
    lists::add(environment)?;
    objects::add(environment)?;
    meter::add(environment)?;
    optionals::add(environment)?;
    places::add(environment)?;
    quantity::add(environment)?;
    open::add(environment)?;
    readable::add(environment)?;
    regex::add(environment)?;
    semver::add(environment)?;
    sets::add(environment)?;
    two_variables::add(environment)?;
    url::add(environment)
}
