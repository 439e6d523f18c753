//! Connection to the cluster of a kubeconfig.

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::cli::Cli;

/// Connects as kubectl does. Returns the client and the namespace of the question.
///
/// # Errors
///
/// The kubeconfig, its context or its credentials can't be used.
pub async fn connect(cli: &Cli) -> anyhow::Result<(Client, String)> {
    let options = KubeConfigOptions {
        context: cli.context.clone(),
        ..KubeConfigOptions::default()
    };
    let mut config = match &cli.kubeconfig {
        Some(path) => {
            let action = || format!("read the kubeconfig {}", path.display());
            let file = Kubeconfig::read_from(path).with_context(action)?;
            let config = Config::from_custom_kubeconfig(file, &options).await;
            config.with_context(action)?
        }
        None if cli.context.is_some() => Config::from_kubeconfig(&options)
            .await
            .context("read the kubeconfig")?,
        None => Config::infer()
            .await
            .context("find a cluster (set --kubeconfig or KUBECONFIG)")?,
    };
    config.default_retry = false;
    let namespace = match &cli.namespace {
        Some(namespace) => namespace.clone(),
        None => config.default_namespace.clone(),
    };
    let client = Client::try_from(config).context("use the credentials of the kubeconfig")?;
    Ok((client, namespace))
}
