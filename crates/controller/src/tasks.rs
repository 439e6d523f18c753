//! Tasks that end together, and whose panics are passed on.

use tokio::task::JoinSet;

/// Waits for `future`, or for a task that panics: a controller that has lost a worker or a cache
/// must not go on as if it had them, so its panic becomes this one's.
pub(crate) async fn panics_passed_on<T>(
    tasks: &mut JoinSet<()>,
    future: impl Future<Output = T>,
) -> T {
    let watch = async {
        join_all(tasks).await;
        std::future::pending().await
    };
    tokio::select! {
        biased;
        output = future => output,
        never = watch => never,
    }
}

/// Waits until all tasks have ended.
///
/// # Panics
///
/// One of them did.
pub(crate) async fn join_all(tasks: &mut JoinSet<()>) {
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}
