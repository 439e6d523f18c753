//! Tasks that stop together. A panic of one stops the others.

use std::any::Any;

use tokio::task::JoinSet;

use crate::error::RunError;

/// Waits for `future` or for a panicking task, because a controller must not run without one of its
/// workers or caches.
///
/// # Errors
///
/// A task panicked.
pub(crate) async fn unless_panicked<T>(
    tasks: &mut JoinSet<()>,
    future: impl Future<Output = T>,
) -> Result<T, RunError> {
    let panicked = async {
        match join_all(tasks).await {
            Ok(()) => std::future::pending().await,
            Err(error) => error,
        }
    };
    tokio::select! {
        biased;
        output = future => Ok(output),
        error = panicked => Err(error),
    }
}

/// Waits until all tasks have finished or one has panicked.
///
/// # Errors
///
/// A task panicked.
pub(crate) async fn join_all(tasks: &mut JoinSet<()>) -> Result<(), RunError> {
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended
            && let Ok(panic) = error.try_into_panic()
        {
            let message = panic_message(&*panic);
            return Err(RunError::Panicked { message });
        }
    }
    Ok(())
}

/// Returns the message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}
