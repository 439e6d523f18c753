//! A complete custom controller manager: the StatefulSet controller alongside a controller that is
//! written with `kube::runtime`, under one lease, with one metrics port and one shutdown.
//!
//! ```sh
//! cargo run -p statefulset-controller --features prometheus --example manager
//! cargo test -p statefulset-controller --features prometheus --example manager # its tests
//! ```
//!
//! The other controller creates the headless Services that StatefulSets name: replace it with
//! yours. No other StatefulSet controller may run on the cluster at the same time.

use std::net::Ipv4Addr;
use std::process;
use std::sync::Arc;

use anyhow::anyhow;
use prometheus::Registry;
use statefulset_controller::client::backoff::SeededJitter;
use statefulset_controller::client::config::{self, ClientOptions};
use statefulset_controller::client::leaderelection::{
    ElectorParts, Ended, LeaderElectionConfig, LeaderElector, LeaseLock, LeaseName,
};
use statefulset_controller::client::metrics::{LeaderElectionFamilies, RestClientFamilies};
use statefulset_controller::client::recorder::NoopRecorder;
use statefulset_controller::metrics::ControllerMetrics;
use statefulset_controller::metrics::prometheus::Options;
use statefulset_controller::{RunError, StatefulSetController};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

mod metrics_port;
mod services;
#[cfg(test)]
mod tests;

/// Name of the program in its lease, its log and its metrics.
const PROGRAM: &str = "my-controller-manager";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let manager = Manager {
        config: kube::Config::infer().await?,
        identity: format!("{PROGRAM}-{}", process::id()),
        metrics_port: TcpListener::bind((Ipv4Addr::LOCALHOST, 9090)).await?,
    };
    let stop = CancellationToken::new();
    let mut running = Box::pin(manager.run(stop.clone()));
    tokio::select! {
        ended = &mut running => return ended,
        _ = tokio::signal::ctrl_c() => stop.cancel(),
    }
    running.await
}

/// The program's environment.
struct Manager {
    /// The cluster.
    config: kube::Config,
    /// Unique among the replicas of this program.
    identity: String,
    metrics_port: TcpListener,
}

impl Manager {
    /// Serves metrics at once, waits for the lease, and runs both controllers while it is held.
    ///
    /// # Errors
    ///
    /// The lease is lost, or a controller or the metrics port has failed. The process should end:
    /// another replica takes over.
    async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let registry = Registry::new();
        let options = Options::default().program(PROGRAM);
        let metrics = ControllerMetrics::register(&registry, &options)?;
        let requests = RestClientFamilies::register(&registry)?;
        let services_created = services::register(&registry)?;
        let server = self.config.cluster_url.to_string();
        let client_options = ClientOptions::default().metrics(requests.client(&server));
        let elector = self.elector(&registry, &client_options)?;

        // Both controllers write through the fence, so neither writes after the lease is lost.
        let fence = elector.fence();
        let services = services::Context {
            client: config::fenced(self.config.clone(), &fence)?,
            created: services_created,
        };
        let stateful_sets = StatefulSetController::builder(self.config)
            .client_options(client_options.fence(fence))
            .metrics(metrics)
            .build()?;

        let controllers = async {
            let services = async {
                services::run(services, stop.clone()).await;
                Ok::<(), RunError>(())
            };
            tokio::try_join!(stateful_sets.run(stop.clone().cancelled_owned()), services)
        };
        tokio::select! {
            ended = elector.run(&stop, controllers) => match ended {
                Ended::NeverLed => Ok(()),
                Ended::Lost(lost) => Err(anyhow!("the lease is lost: {lost}")),
                Ended::Finished(result) => result.map(drop).map_err(Into::into),
            },
            failed = metrics_port::serve(self.metrics_port, registry) => Err(failed.into()),
        }
    }

    /// The election of the whole process. Its client has separate limits, so renewals wait for no
    /// other request, and no fence, because the election opens it.
    fn elector(
        &self,
        registry: &Registry,
        options: &ClientOptions,
    ) -> anyhow::Result<LeaderElector> {
        let lease = LeaseName::new("default", PROGRAM);
        let client = config::client(&self.config, options)?;
        let lock = LeaseLock::new(client, lease, self.identity.clone(), Arc::new(NoopRecorder));
        let jitter = Arc::new(SeededJitter::new(process::id().into()));
        let metrics = LeaderElectionFamilies::register(registry)?;
        let parts = ElectorParts::new(lock, jitter).metrics(Arc::new(metrics));
        let config = LeaderElectionConfig::default().release_on_cancel(true);
        Ok(LeaderElector::new(config, parts)?)
    }
}
