//! A minimal controller manager: runs the StatefulSet controller on the current cluster until
//! ctrl-c:
//!
//! ```sh
//! cargo run -p embedder
//! ```

use statefulset_controller::StatefulSetController;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = kube::Config::infer().await?;
    let shutdown = async { drop(tokio::signal::ctrl_c().await) };
    let controller = StatefulSetController::builder(config).build()?;
    Ok(controller.run(shutdown).await?)
}
