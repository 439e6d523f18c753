//! The wait for an API server that allows what the program needs.
//!
//! A server that is down or not trusted, credentials that are refused, and rights that are missing
//! can all become right while the program runs. Each is logged once and waited for.

use std::sync::Arc;
use std::time::Duration;

use statefulset_client::error::Error;
use statefulset_client::leaderelection::LeaseName;
use statefulset_client::resource::{
    CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, Resource, STATEFUL_SETS,
};
use statefulset_client::rest::api_health::ApiHealthLog;
use statefulset_client::rest::{ListOptions, RestClient};
use statefulset_client::transport::ServiceAccountName;
use tokio::time::{Instant, sleep};

mod account;
mod lease;
#[cfg(test)]
mod tests;

/// The first pause between two looks; each pause is twice the one before.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause between two looks.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// The time after which a look without an outcome is logged.
const SLOW: Duration = Duration::from_secs(10);
/// The resources that the informers read.
const LISTED: [Resource; 4] = [
    STATEFUL_SETS,
    PODS,
    PERSISTENT_VOLUME_CLAIMS,
    CONTROLLER_REVISIONS,
];

/// The reason why the program can't work yet.
#[derive(Debug, PartialEq, Eq)]
enum Obstacle {
    /// An outage or refused credentials: other code has logged it.
    AlreadyLogged,
    /// Rights are missing.
    Rights {
        /// The rights.
        missing: String,
        /// The first refusal; empty if a review told.
        error: String,
        /// What to do.
        advice: String,
    },
    /// A request failed for a reason of its own, or takes long; the whole log line.
    Request(String),
}

/// What the program needs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Needs<'a> {
    /// The account whose tokens it asks for, if any.
    pub(crate) account: Option<&'a ServiceAccountName>,
    /// The lease of its election, if there is one.
    pub(crate) lease: Option<&'a LeaseName>,
}

/// Waits until the lists that fill the caches are allowed, the lease can be read and, with a
/// service account, tokens of it may be had. The state hears of outages and refused credentials; missing rights are logged here, in one
/// line that names the role.
pub(crate) async fn wait_for_access(client: &RestClient, state: &ApiHealthLog, needs: Needs<'_>) {
    let client = client
        .clone()
        .with_api_health(Arc::new(state.without_rights()));
    let begin = Instant::now();
    let mut told = None;
    let mut pause = PAUSE_MIN;
    while let Err(obstacle) = look_or_log(&client, needs, &mut told).await {
        if obstacle != Obstacle::AlreadyLogged && told.as_ref() != Some(&obstacle) {
            obstacle.log();
            told = Some(obstacle);
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
    if told.is_some() {
        let after = format!("{} s", begin.elapsed().as_secs());
        tracing::info!(%after, "the API server allows what the program needs");
    }
    if let Some(account) = needs.account {
        account::warn_of_missing_rights(&client, account).await;
    }
}

impl Obstacle {
    fn of(error: &Error, action: &str) -> Self {
        if error.is_server_wide() {
            Self::AlreadyLogged
        } else {
            Self::Request(format!("cannot {action}: {error}, trying again"))
        }
    }

    fn log(&self) {
        match self {
            Self::AlreadyLogged => {}
            Self::Rights {
                missing,
                error,
                advice,
            } => {
                let error = Some(error).filter(|error| !error.is_empty());
                tracing::warn!(%missing, error, "rights are missing, trying again; {advice}");
            }
            Self::Request(text) => tracing::warn!("{text}"),
        }
    }
}

/// Looks once. A look that takes long is logged, and goes on.
async fn look_or_log(
    client: &RestClient,
    needs: Needs<'_>,
    told: &mut Option<Obstacle>,
) -> Result<(), Obstacle> {
    let looking = look(client, needs);
    tokio::pin!(looking);
    tokio::select! {
        biased;
        result = &mut looking => return result,
        () = sleep(SLOW) => {}
    }
    if told.is_none() {
        let seconds = SLOW.as_secs();
        let slow = Obstacle::Request(format!(
            "the first requests to the API server take longer than {seconds} s, waiting; it may \
             answer late, a credential plugin may hang, or --kube-api-qps may be low"
        ));
        slow.log();
        *told = Some(slow);
    }
    looking.await
}

async fn look(client: &RestClient, needs: Needs<'_>) -> Result<(), Obstacle> {
    check_lists(client, needs.account.is_some()).await?;
    if let Some(lease) = needs.lease {
        lease::check_lease(client, lease).await?;
    }
    match needs.account {
        Some(account) => account::check_tokens(client, account).await,
        None => Ok(()),
    }
}

/// Checks that the informers may read what they cache.
async fn check_lists(client: &RestClient, is_manager: bool) -> Result<(), Obstacle> {
    let mut forbidden = Vec::new();
    let mut first_answer = String::new();
    for resource in LISTED {
        let options = ListOptions {
            limit: 1,
            ..ListOptions::default()
        };
        let name = resource.group_resource().to_string();
        match client.list(&resource, &options).await {
            Ok(_) => {}
            Err(error) if error.is_forbidden() => {
                if forbidden.is_empty() {
                    first_answer = error.to_string();
                }
                forbidden.push(name);
            }
            // Of lists the state logs that too.
            Err(error) if error.is_server_failure() => return Err(Obstacle::AlreadyLogged),
            Err(error) => return Err(Obstacle::of(&error, &format!("list {name}"))),
        }
    }
    if forbidden.is_empty() {
        return Ok(());
    }
    let role = if is_manager {
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
