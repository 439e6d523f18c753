//! Chains of causes.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// The failure of a step that a request needs before it is sent, such as the request of a token.
///
/// How the step failed says nothing about the request. So the client doesn't look for a lost
/// connection, a rejected certificate and the like in it.
#[derive(Debug, Clone)]
pub struct Preparation(Arc<dyn StdError + Send + Sync>);

impl Preparation {
    pub(crate) fn new(error: impl StdError + Send + Sync + 'static) -> Self {
        Self(Arc::new(error))
    }

    /// Returns the error of the step.
    pub fn error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.0
    }
}

impl fmt::Display for Preparation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Preparation {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

/// Returns an error and its causes, including the error that an I/O error wraps. Ends at a
/// [`Preparation`].
pub(crate) fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| {
        if error.is::<Preparation>() {
            return None;
        }
        // `source` of an I/O error skips the error it wraps.
        match error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref)
        {
            Some(inner) => Some(inner),
            None => error.source(),
        }
    })
}
