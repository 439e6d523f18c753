//! Checks before anything runs, so that a wrong address, wrong credentials and missing rights are
//! told at once and in one line.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use http::Uri;
use statefulset_client::config::ConfigError;
use statefulset_client::resource::{
    CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, Resource, STATEFUL_SETS,
};
use statefulset_client::rest::{ListOptions, RestClient};
use tokio::time::{sleep, timeout};

pub(crate) use account::check_account;

mod account;
#[cfg(test)]
mod tests;

/// How long the API server may take to come up.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// The pause between two looks.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// What the informers read.
const LISTED: [Resource; 4] = [
    STATEFUL_SETS,
    PODS,
    PERSISTENT_VOLUME_CLAIMS,
    CONTROLLER_REVISIONS,
];

/// Waits until the API server says that it is healthy. What waiting can't mend isn't waited for.
///
/// # Errors
///
/// What the last look found.
///
/// Upstream: `WaitForAPIServer`.
pub(crate) async fn wait_for_api_server(client: &RestClient, server: &Uri) -> anyhow::Result<()> {
    let mut last = None;
    let polling = async {
        loop {
            match look(client, server).await {
                Look::Healthy => return Ok(()),
                Look::Hopeless(error) => return Err(error),
                Look::NotYet(error) => {
                    if last.is_none() {
                        tracing::info!(%error, "waiting for the API server");
                    }
                    last = Some(error);
                }
            }
            sleep(POLL_INTERVAL).await;
        }
    };
    if let Ok(result) = timeout(WAIT_MAX, polling).await {
        return result;
    }
    let seconds = WAIT_MAX.as_secs();
    Err(last.unwrap_or_else(|| {
        anyhow!("the API server at {server} has not answered within {seconds} s")
    }))
}

/// What one look at the server finds.
enum Look {
    Healthy,
    /// It may come up.
    NotYet(anyhow::Error),
    /// It won't by itself.
    Hopeless(anyhow::Error),
}

async fn look(client: &RestClient, server: &Uri) -> Look {
    let Err(error) = client.get_path("/healthz").await else {
        return Look::Healthy;
    };
    if let Some(status) = error.status() {
        if error.is_unauthorized() {
            let (server, source) = (server.clone(), Box::new(error));
            return Look::Hopeless(ConfigError::Unauthorized { server, source }.into());
        }
        if status.code >= 500 || error.is_too_many_requests() {
            return Look::NotYet(anyhow!(
                "the API server at {server} is not healthy: {error}"
            ));
        }
        // It answers; whether it allows what is needed is another question.
        return Look::Healthy;
    }
    let secured = error.is_tls();
    let (server, source) = (server.clone(), Box::new(error));
    let error = anyhow::Error::from(ConfigError::Unreachable { server, source });
    if secured {
        let advice = "check the address and the certificates of the kubeconfig";
        return Look::Hopeless(anyhow!("{error}; {advice}"));
    }
    Look::NotYet(error)
}

/// Checks that everything that the informers read may be read; the role is the one that allows it.
///
/// # Errors
///
/// Something may not, or can't.
pub(crate) async fn check_rights(client: &RestClient, role: &str) -> anyhow::Result<()> {
    let mut forbidden = Vec::new();
    let mut first_answer = None;
    for resource in LISTED {
        let options = ListOptions {
            limit: 1,
            ..ListOptions::default()
        };
        match client.list(&resource, &options).await {
            Ok(_) => {}
            Err(error) if error.is_forbidden() => {
                forbidden.push(resource.group_resource().to_string());
                first_answer.get_or_insert(error);
            }
            Err(error) => {
                return Err(error).with_context(|| format!("list {}", resource.group_resource()));
            }
        }
    }
    if let Some(answer) = first_answer {
        bail!(
            "not allowed to list {} in all namespaces: {answer}; bind the ClusterRole {role}, or \
             one with the same rules, to this user",
            forbidden.join(", ")
        );
    }
    Ok(())
}
