//! The effects of a change of a set, before it is made.
//!
//! The set's objects are loaded into an embedded control plane ([`world`]), the change is sent to
//! its API server ([`change`]), and the shipped controller runs there in virtual time until nothing
//! changes. The answer lists its writes ([`steps`]).

mod change;
mod steps;
mod text;
mod world;

use anyhow::{Context as _, anyhow};
use serde::Serialize;
use serde_json::Value;

use crate::Session;
use crate::cli::PlanArguments;
use crate::model::Set;
use crate::objects::read;
use crate::server::Server;
pub(crate) use steps::Step;

/// The effects of a change.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plan {
    namespace: String,
    set: String,
    /// The controller's writes, in order.
    pub(crate) steps: Vec<Step>,
    /// Claims that would be deleted, with their data.
    claims_deleted: Vec<DeletedClaim>,
    /// Ready pods now, and the fewest at any moment of the plan.
    ready: usize,
    least_ready: usize,
    /// Budgets of the pods, and the healthy pods that each requires.
    budgets: Vec<PlannedBudget>,
    /// True if no pod is ready at some moment, although several are now.
    all_at_once: bool,
    /// True if the set would be complete at the end.
    is_complete: bool,
    /// The reason to wait at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_with: Option<String>,
    /// Estimated duration.
    seconds: i64,
    /// Seconds that the existing pods took to become ready; `None` without such pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_to_ready: Option<i64>,
}

/// A claim that would be deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeletedClaim {
    name: String,
    size: String,
    storage_class: String,
}

/// A disruption budget of the set's pods. It doesn't limit the controller's
/// deletions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlannedBudget {
    name: String,
    required: i32,
    /// True if fewer pods than required are ready at some moment.
    is_broken: bool,
}

impl Plan {
    /// True if data would be deleted, or every pod be down at once.
    pub(crate) fn is_dangerous(&self) -> bool {
        !self.claims_deleted.is_empty() || self.all_at_once
    }
}

/// Plans a change.
///
/// # Errors
///
/// The set can't be read, the change is invalid, or the API server would refuse it.
pub(crate) async fn plan(
    server: &Server,
    session: &Session,
    arguments: &PlanArguments,
) -> anyhow::Result<Plan> {
    let file = arguments
        .file
        .as_deref()
        .map(change::read_file)
        .transpose()?;
    let name = match (&file, &arguments.name) {
        (Some(file), _) => change::text(file, "/metadata/name").to_owned(),
        (None, Some(name)) => name.clone(),
        (None, None) => return Err(anyhow!("name a set, or a manifest with -f")),
    };
    let namespace = match &file {
        Some(file) if !change::text(file, "/metadata/namespace").is_empty() => {
            change::text(file, "/metadata/namespace")
        }
        _ => session.namespace.as_str(),
    };
    let sets = match read::sets(server, Some(namespace), std::slice::from_ref(&name)).await {
        Err(_) if file.is_some() && is_missing(server, namespace, &name).await => Vec::new(),
        sets => sets?,
    };
    let mut unread = Vec::new();
    let read = read::namespace(server, sets, session.now, &mut unread).await?;
    let snapshot = read.into_snapshot();
    for text in &unread {
        server.note_unread(text);
    }
    if let Some(set) = &snapshot.set
        && let Some(object) = snapshot.unreadable(&set.object)
    {
        return Err(anyhow!(
            "{object}; the controller waits until it can be decoded"
        ));
    }
    let situation = world::Situation {
        namespace,
        name: &name,
        snapshot: &snapshot,
        now: session.now,
        arguments,
        file: file.as_ref(),
    };
    let changed = in_virtual_time(|| world::change(&situation))?;
    let changed = checked(server, &situation, changed).await?;
    in_virtual_time(|| world::run(&situation, &changed))
}

/// Runs a future on a separate runtime with a paused clock.
fn in_virtual_time<T: Send, F: Future<Output = anyhow::Result<T>>>(
    future: impl FnOnce() -> F + Send,
) -> anyhow::Result<T> {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .context("start the simulation")?;
        runtime.block_on(future())
    };
    std::thread::scope(|scope| {
        let ended = scope.spawn(run).join();
        ended.unwrap_or_else(|_| Err(anyhow!("the simulation failed; report this as a bug")))
    })
}

/// The changed set as the API server would store it, by a dry run. Without permission to change the
/// set, it stays as the embedded server stores it.
async fn checked(
    server: &Server,
    situation: &world::Situation<'_>,
    changed: Value,
) -> anyhow::Result<Value> {
    let world::Situation {
        namespace, name, ..
    } = situation;
    let answer = if let Some(set) = situation.snapshot.set.as_ref() {
        let live: Value = serde_json::from_str(&set.text).context("decode the set")?;
        let set = change::with_content(live, &changed);
        server.dry_run(namespace, Some(name), &set).await?
    } else {
        let set = change::new_set(name, &changed);
        server.dry_run(namespace, None, &set).await?
    };
    Ok(answer.unwrap_or(changed))
}

/// Reports whether the set doesn't exist yet.
async fn is_missing(server: &Server, namespace: &str, name: &str) -> bool {
    let set = server
        .get(&crate::server::STATEFUL_SETS, Some(namespace), name)
        .await;
    matches!(set, Ok(None))
}

/// Reports whether all wanted pods are available and the controller has seen the last change.
fn is_complete(set: &Set) -> bool {
    let status = &set.status;
    let counters = [
        status.replicas,
        status.ready_replicas,
        status.available_replicas,
    ];
    status.observed_generation >= set.metadata.generation
        && counters.iter().all(|counter| *counter == set.replicas())
}
