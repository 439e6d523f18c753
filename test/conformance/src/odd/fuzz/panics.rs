//! Panics of the process, caught ones included.

use std::sync::{Arc, Mutex, PoisonError};

/// Notes every panic from now on.
#[derive(Clone, Debug, Default)]
pub struct Panics(Arc<Mutex<Vec<String>>>);

impl Panics {
    /// Has the panic hook of the process note message and place first.
    pub fn watch() -> Self {
        let panics = Self::default();
        let noted = Arc::clone(&panics.0);
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let mut all = noted.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(panic.to_string());
            drop(all);
            previous(panic);
        }));
        panics
    }

    /// How many there were.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The panics after the first so many.
    pub(super) fn since(&self, first: usize) -> Vec<String> {
        let panics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        panics.iter().skip(first).cloned().collect()
    }
}
