//! Chains of causes.

use std::error::Error as StdError;

/// Returns an error and its causes, including the error that an I/O error wraps.
pub(crate) fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| {
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
