//! Everything that this crate counts, in a [`prometheus::Registry`] of the caller's: names, help,
//! labels and buckets are those of a kube-controller-manager.
//!
//! There is no global registry. Each `register` adds its families to the registry that it is given,
//! once; the values that it returns hand out what the clients, queues and informers take.
//! [`text`] writes a registry's families as Go's exporters do.

use prometheus::core::Collector;
use prometheus::{Error, Registry};

pub use informer::InformerFamilies;
pub use leader_election::LeaderElectionFamilies;
pub use rest_client::RestClientFamilies;
pub use workqueue::WorkqueueFamilies;

mod in_step;
mod informer;
mod leader_election;
mod rest_client;
pub mod text;
mod workqueue;

#[cfg(test)]
mod tests;

/// Adds a family to a registry, if it could be made.
///
/// # Errors
///
/// It could not be made, or the registry has a family of its name; the error says which.
pub fn register<C>(registry: &Registry, collector: Result<C, Error>) -> Result<C, Error>
where
    C: Collector + Clone + 'static,
{
    let collector = collector?;
    registry
        .register(Box::new(collector.clone()))
        .map_err(|error| named(&collector, error))?;
    Ok(collector)
}

/// The error of a registry that has a family of the name, which by itself doesn't say which.
fn named(collector: &impl Collector, error: Error) -> Error {
    if !matches!(error, Error::AlreadyReg | Error::Msg(_)) {
        return error;
    }
    let descriptions = collector.desc();
    let names: Vec<&str> = descriptions.iter().map(|desc| &*desc.fq_name).collect();
    Error::Msg(format!(
        "cannot register {}: the registry has a family of this name already",
        names.join(" and ")
    ))
}
