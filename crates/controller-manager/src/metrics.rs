//! The `/metrics` page.

use std::path::Path;
use std::sync::Arc;

use http::Uri;
use http::uri::Authority;
use prometheus::{Error, Registry};
use statefulset_client::leaderelection::LeaderElectionMetrics;
use statefulset_client::metrics::{LeaderElectionFamilies, RestClientFamilies, text};
use statefulset_client::rest::metrics::ClientMetrics;
use statefulset_controller::metrics::prometheus::{FenceFamilies, Options, ShadowFamilies};
use statefulset_controller::metrics::{ControllerMetrics, ShadowMetrics};

pub(crate) use build::{Feature, Release};
pub(crate) use view::View;

mod build;
mod process;
#[cfg(test)]
mod tests;
mod view;

/// Minor version of Kubernetes 1 from which the counter of syncs skipped for a stale cache is
/// shown.
const STALE_SYNC_SKIPS_SINCE: u32 = 37;

/// All metric families, in the program's own registry.
pub(crate) struct Metrics {
    registry: Registry,
    view: View,
    clients: RestClientFamilies,
    /// Metrics for the controller.
    pub(crate) controller: ControllerMetrics,
    /// Metrics for leader election.
    pub(crate) leader_election: Arc<dyn LeaderElectionMetrics>,
}

impl Metrics {
    /// Creates the families. Series of requests, sets and caches appear with their first count.
    ///
    /// # Errors
    ///
    /// Two families have one name: a bug.
    pub(crate) fn new(release: Release, features: &[Feature], view: View) -> Result<Self, Error> {
        let registry = Registry::new();
        build::register_build_info(&registry, release)?;
        build::register_features(&registry, features)?;
        registry.register(Box::new(process::ProcessCollector::new(Path::new(
            "/proc",
        ))?))?;
        let options = Options::default().stale_sync_skips(release.minor >= STALE_SYNC_SKIPS_SINCE);
        Ok(Self {
            clients: RestClientFamilies::register(&registry)?,
            controller: ControllerMetrics::register(&registry, &options)?,
            leader_election: Arc::new(LeaderElectionFamilies::register(&registry)?),
            registry,
            view,
        })
    }

    /// Adds the metrics of a shadow.
    ///
    /// # Errors
    ///
    /// The family exists already: a bug.
    pub(crate) fn shadow(&self) -> Result<Arc<dyn ShadowMetrics>, Error> {
        Ok(Arc::new(ShadowFamilies::register(&self.registry)?))
    }

    /// Metrics of the controller, with those of the fence if it has one.
    ///
    /// # Errors
    ///
    /// The fence's families exist already: a bug.
    pub(crate) fn of_controller(&self, has_fence: bool) -> Result<ControllerMetrics, Error> {
        let controller = self.controller.clone();
        if !has_fence {
            return Ok(controller);
        }
        let fence = FenceFamilies::register(&self.registry)?;
        Ok(controller.fence(Arc::new(fence)))
    }

    /// Metrics for a new client of this server.
    pub(crate) fn client(&self, server: &Uri) -> Arc<dyn ClientMetrics> {
        let authority = server.authority().map_or("", Authority::as_str);
        // Go's `URL.Host` has no user.
        let host = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        self.clients.client(host)
    }

    /// All metrics in the text format; the content type is [`text::CONTENT_TYPE`].
    pub(crate) fn gather(&self) -> String {
        text::encode(&self.view.apply(self.registry.gather()))
    }
}
