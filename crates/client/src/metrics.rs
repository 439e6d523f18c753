//! The crate's metrics, in the caller's [`prometheus::Registry`]. Names, help, labels and buckets
//! equal those of kube-controller-manager.
//!
//! There is no global registry. Each `register` adds its families once to a given registry. The
//! values that it returns create the metrics of clients, queues and informers. [`text`] encodes a
//! registry's families like Go's exporters.

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

/// Adds a family to a registry.
///
/// # Errors
///
/// Fails if the family is invalid, or if the registry has a family with its name. The error
/// contains the name.
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

/// Adds the family's name to the registry's error, which lacks it.
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
