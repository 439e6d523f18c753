//! Kubernetes' own functions.

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

mod address;
pub(super) mod format;
mod lists;
pub(super) mod meter;
mod quantity;
mod regex;
mod semver;
mod sets;
pub(super) mod two_variables;
mod url;

use cel::{DeclarationError, Env};

/// Adds all functions.
pub(super) fn add(environment: &mut Env) -> Result<(), DeclarationError> {
    address::add(environment)?;
    format::add(environment)?;
    lists::add(environment)?;
    meter::add(environment)?;
    quantity::add(environment)?;
    regex::add(environment)?;
    semver::add(environment)?;
    sets::add(environment)?;
    two_variables::add(environment)?;
    url::add(environment)
}
