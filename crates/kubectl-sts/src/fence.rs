//! The fence of a cluster whose built-in controller can't be disabled: its installation, state and
//! proof, and the way back.

mod install;
mod probe;
mod prove;
mod release;
pub(crate) mod shipped;
mod status;

use crate::Session;
use crate::cli::FenceCommand;
use crate::cluster::Cluster;
use crate::report::Report;

/// Runs a command.
///
/// # Errors
///
/// The cluster can't be reached, a permission is missing, or a write is rejected.
pub(crate) async fn run(session: &Session, command: &FenceCommand) -> anyhow::Result<Report> {
    let cluster = Cluster::new(session.client.clone());
    let mut report = Report::new();
    match command {
        FenceCommand::Install(arguments) => {
            install::install(&cluster, arguments, &mut report).await?;
        }
        FenceCommand::Uninstall => install::uninstall(&cluster, &mut report).await?,
        FenceCommand::Status => status::status(&cluster, &mut report).await?,
        FenceCommand::Prove { namespace } => {
            prove::prove(&cluster, namespace, session.now, &mut report).await?;
        }
        FenceCommand::Release { namespace } => {
            release::release(&cluster, namespace, &mut report).await?;
        }
    }
    Ok(report)
}
