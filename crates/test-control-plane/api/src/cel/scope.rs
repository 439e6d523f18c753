//! Variables that many expressions read.

use std::fmt;
use std::sync::Arc;

use cel::Context;

use super::environment::ENVIRONMENT;
use super::values::Value;

/// Variables for any number of evaluations.
///
/// Upstream: `evaluationActivation`
pub(crate) struct Scope(Context<'static, 'static>);

impl Scope {
    /// Returns a scope with these variables.
    pub(crate) fn new<'a>(variables: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        for (name, value) in variables {
            context.add_variable_as_val(name, value);
        }
        Self(context)
    }

    /// Returns the context of the variables.
    pub(super) fn context(&self) -> &Context<'static, 'static> {
        &self.0
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Scope").finish_non_exhaustive()
    }
}
