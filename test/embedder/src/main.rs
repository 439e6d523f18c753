//! A minimal controller manager: runs the StatefulSet controller on the current cluster until
//! ctrl-c:
//!
//! ```sh
//! cargo run -p embedder
//! ```

use statefulset_controller::StatefulSetController;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = kube::Config::infer().await?;
    config.default_retry = false; // the controller has its own retries, behind its fence
    let client = kube::Client::try_from(config)?;
    let shutdown = async { drop(tokio::signal::ctrl_c().await) };
    let controller = StatefulSetController::builder(client).build()?;
    Ok(controller.run(shutdown).await?)
}
