//! The smallest controller manager: the StatefulSet controller of the current cluster, until
//! ctrl-c:
//!
//! ```sh
//! cargo run -p statefulset-controller --example minimal
//! ```

use statefulset_controller::StatefulSetController;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = kube::Client::try_default().await?;
    let shutdown = async { drop(tokio::signal::ctrl_c().await) };
    let controller = StatefulSetController::builder(client).build()?;
    Ok(controller.run(shutdown).await?)
}
