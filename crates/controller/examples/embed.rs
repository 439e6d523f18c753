//! A custom controller manager whose replicas compete for a lease:
//!
//! ```sh
//! cargo run -p statefulset-controller --example embed -- my-lease
//! ```
//!
//! No other StatefulSet controller may run on the cluster at the same time. The library logs
//! through `tracing`: install a subscriber to see its log. It enables no version feature of
//! k8s-openapi: choose the one of your other controllers.

use std::process;

use statefulset_controller::client::config::ClientOptions;
use statefulset_controller::client::leaderelection::LeaseName;
use statefulset_controller::{LeaderElection, StatefulSetController};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let name = std::env::args().nth(1).unwrap_or("embed".to_owned());
    let config = kube::Config::infer().await?;
    let lease = LeaseName::new("default", name);
    let identity = format!("embed-{}", process::id());
    // Informers, writes and the lease each have these limits, so none delays another.
    let options = ClientOptions::default().qps(50.0).burst(100);
    let controller = StatefulSetController::builder(config)
        .client_options(options)
        .leader_election(LeaderElection::new(lease, identity))
        .build()?;
    let shutdown = async { drop(tokio::signal::ctrl_c().await) };
    // A lost lease is an error: the process exits, and another replica takes over.
    Ok(controller.run(shutdown).await?)
}
