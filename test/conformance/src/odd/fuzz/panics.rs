//! Recorder of the process's panics, including caught ones.

use std::sync::{Arc, Mutex, PoisonError};

/// Records all further panics.
#[derive(Clone, Debug, Default)]
pub struct Panics(Arc<Mutex<Vec<String>>>);

impl Panics {
    /// Installs a panic hook that records message and location.
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

    /// Number of panics.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Panics after the first `first` ones.
    pub(super) fn since(&self, first: usize) -> Vec<String> {
        let panics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        panics.iter().skip(first).cloned().collect()
    }
}
