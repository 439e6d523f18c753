//! Startup wait until the API server grants the permissions that the program needs.
//!
//! An unreachable or untrusted server, rejected credentials and missing permissions can all be
//! fixed while the program runs. Each is logged once, and the program keeps waiting.

use std::sync::Arc;
use std::time::Duration;

use statefulset_client::leaderelection::LeaseName;
use statefulset_client::resource::{
    CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, Resource, STATEFUL_SETS,
};
use statefulset_client::rest::api_health::ApiHealthLog;
use statefulset_client::rest::{ListOptions, RestClient};
use statefulset_client::shard::Shard;
use statefulset_client::transport::ServiceAccountName;
use statefulset_controller::fence::NamespaceSelector;
use tokio::time::{Instant, sleep};

mod account;
mod fence;
mod lease;
mod obstacle;
#[cfg(test)]
mod tests;

use obstacle::Obstacle;

/// First pause between two checks; each pause doubles.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Longest pause between two checks.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Time after which a pending check is logged.
const SLOW: Duration = Duration::from_secs(10);
/// Resources that the informers read.
const LISTED: [Resource; 4] = [
    STATEFUL_SETS,
    PODS,
    PERSISTENT_VOLUME_CLAIMS,
    CONTROLLER_REVISIONS,
];

/// Resources that the program needs access to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Needs<'a> {
    /// Service account whose tokens it requests, if any.
    pub(crate) account: Option<&'a ServiceAccountName>,
    /// Lease of its leader election, if any.
    pub(crate) lease: Option<&'a LeaseName>,
    /// Shard whose objects it reads, if not all.
    pub(crate) shard: Option<Shard>,
    /// Label of the namespaces whose objects it reads, if not all.
    pub(crate) namespace_selector: Option<&'a NamespaceSelector>,
}

/// Waits until the lists that fill the caches are allowed, the lease is readable and, with a
/// service account, its tokens can be requested. [`ApiHealthLog`] logs outages and rejected
/// credentials; this function logs missing permissions, in one line that names the role.
pub(crate) async fn wait_for_access(client: &RestClient, state: &ApiHealthLog, needs: Needs<'_>) {
    let client = client
        .clone()
        .with_api_health(Arc::new(state.without_rights()));
    let begin = Instant::now();
    let mut logged = None;
    let mut pause = PAUSE_MIN;
    while let Err(obstacle) = check_or_log(&client, needs, &mut logged).await {
        if obstacle != Obstacle::AlreadyLogged && logged.as_ref() != Some(&obstacle) {
            obstacle.log();
            logged = Some(obstacle);
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
    if logged.is_some() {
        let after = format!("{} s", begin.elapsed().as_secs());
        tracing::info!(%after, "the API server grants the required access");
    }
    if let Some(account) = needs.account {
        account::warn_of_missing_rights(&client, account).await;
    }
}

/// Checks once. Logs a slow check and keeps waiting for it.
async fn check_or_log(
    client: &RestClient,
    needs: Needs<'_>,
    logged: &mut Option<Obstacle>,
) -> Result<(), Obstacle> {
    let checking = check(client, needs);
    tokio::pin!(checking);
    tokio::select! {
        biased;
        result = &mut checking => return result,
        () = sleep(SLOW) => {}
    }
    if logged.is_none() {
        let seconds = SLOW.as_secs();
        let slow = Obstacle::Request(format!(
            "the first requests to the API server take longer than {seconds} s, waiting; it may \
             answer late, a credential plugin may hang, or --kube-api-qps may be low"
        ));
        slow.log();
        *logged = Some(slow);
    }
    checking.await
}

async fn check(client: &RestClient, needs: Needs<'_>) -> Result<(), Obstacle> {
    match needs.namespace_selector {
        Some(selector) => fence::check_fence(client, selector).await?,
        None => check_lists(client, needs).await?,
    }
    if let Some(lease) = needs.lease {
        lease::check_lease(client, lease).await?;
    }
    match needs.account {
        Some(account) => account::check_tokens(client, account).await,
        None => Ok(()),
    }
}

/// Checks that the informers may list the resources they cache, with the informers' selector.
async fn check_lists(client: &RestClient, needs: Needs<'_>) -> Result<(), Obstacle> {
    let mut forbidden = Vec::new();
    let mut first_answer = String::new();
    for resource in LISTED {
        let shard = needs.shard.map_or_else(String::new, Shard::selector);
        let options = ListOptions::default().limit(1).shard_selector(shard);
        let name = resource.group_resource().to_string();
        match client.list(&resource, &options).await {
            Ok(_) => {}
            Err(error) if error.is_forbidden() => {
                if forbidden.is_empty() {
                    first_answer = error.to_string();
                }
                forbidden.push(name);
            }
            // [`ApiHealthLog`] logs these too for lists.
            Err(error) if error.is_server_failure() => return Err(Obstacle::AlreadyLogged),
            Err(error) => return Err(Obstacle::of(&error, &format!("list {name}"))),
        }
    }
    if forbidden.is_empty() {
        return Ok(());
    }
    let role = if needs.account.is_some() {
        "system:kube-controller-manager"
    } else {
        "system:controller:statefulset-controller"
    };
    Err(Obstacle::Rights {
        missing: format!("list {} in all namespaces", forbidden.join(", ")),
        error: first_answer,
        advice: format!("bind the ClusterRole {role}, or one with the same rules, to this user"),
    })
}
