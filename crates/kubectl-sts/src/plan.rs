//! The effects of a change of a set, before it is made.
//!
//! The cluster's server decides about the change by a dry run ([`decision`]). The set's objects are
//! loaded into an embedded control plane ([`world`]), and the shipped controller runs there on the
//! changed set, in virtual time, until nothing changes. The answer lists its writes ([`steps`]) and
//! the claims that go ([`loss`]) with the end of their data ([`volumes`]).

mod change;
mod decision;
mod ending;
mod loss;
mod outcome;
mod owners;
mod situation;
mod steps;
mod text;
mod virtual_time;
mod volumes;
mod world;

use anyhow::anyhow;
use serde_json::Value;

use crate::Session;
use crate::cli::PlanArguments;
use crate::model::Metadata;
use crate::objects::{Snapshot, read};
use crate::server::{NAMESPACES, STATEFUL_SETS, Server};
use change::Part;
use loss::{Desired, losses, risks};
use outcome::ClaimAtRisk;
pub(crate) use outcome::Plan;
use situation::Situation;
pub(crate) use text::text;
use virtual_time::in_virtual_time;

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
    let snapshot = snapshot(server, session, namespace, &name, file.as_ref()).await?;
    if let Some(set) = &snapshot.set
        && let Some(object) = snapshot.unreadable(&set.object)
    {
        return Err(anyhow!(
            "{object}; the controller waits until it can be decoded"
        ));
    }
    let situation = Situation {
        namespace,
        name: &name,
        owners: owners::existing(server, namespace, &name, &snapshot).await,
        namespace_ends: is_ending(server, namespace).await,
        snapshot: &snapshot,
        now: session.now,
        arguments,
        file: file.as_ref(),
    };
    let parts = change::parts(&situation)?;
    if situation.is_ending() {
        return ending::plan(server, &situation).await;
    }
    run(server, &situation, &parts).await
}

/// Reads the set and the objects that concern it; of a new set, the objects with its names.
async fn snapshot(
    server: &Server,
    session: &Session,
    namespace: &str,
    name: &str,
    file: Option<&Value>,
) -> anyhow::Result<Snapshot> {
    let name = name.to_owned();
    let sets = read::sets(server, namespace, std::slice::from_ref(&name)).await;
    let mut unread = Vec::new();
    let snapshot = match (sets, file) {
        (Err(_), Some(file)) if is_missing(server, namespace, &name).await => {
            let planned = vec![read::planned(file, namespace)?];
            let read = read::namespace(server, planned, session.now, &mut unread).await?;
            read.into_snapshot_without_set()
        }
        (sets, _) => {
            let read = read::namespace(server, sets?, session.now, &mut unread).await?;
            read.into_snapshot()
        }
    };
    for text in &unread {
        server.note_unread(text);
    }
    Ok(snapshot)
}

/// Runs the controller on the changed set, and adds the claims that go.
async fn run(server: &Server, situation: &Situation<'_>, parts: &[Part]) -> anyhow::Result<Plan> {
    let changed = decision::changed(server, situation, parts).await?;
    let mut course = in_virtual_time(|| world::run(situation, &changed, true))?;
    if let Some(rejected) = course.rejected.take() {
        let decided = decision::about_rejected(server, situation, &rejected).await?;
        match decided {
            None => course = in_virtual_time(|| world::run(situation, &changed, false))?,
            Some(reason) => course.plan.ends_with = Some(reason),
        }
    }
    let desired = Desired {
        set: &course.set,
        is_built_in: situation.snapshot.is_built_in(),
    };
    let lost = losses(situation, &desired, &course.ending);
    let at_risk = risks(situation, &lost).into_iter();
    course.plan.claims_at_risk = at_risk
        .map(|risk| ClaimAtRisk {
            name: risk.claim,
            holder: risk.holder,
        })
        .collect();
    course.plan.claims_deleted = volumes::ends(server, situation.snapshot, lost).await;
    Ok(course.plan)
}

/// Reports whether the set doesn't exist yet.
async fn is_missing(server: &Server, namespace: &str, name: &str) -> bool {
    let set = server.get(&STATEFUL_SETS, Some(namespace), name).await;
    matches!(set, Ok(None))
}

/// Reports whether the namespace is being deleted. Users may lack the permission to read it.
async fn is_ending(server: &Server, name: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Namespace {
        metadata: Metadata,
    }
    let text = server.get(&NAMESPACES, None, name).await.ok().flatten();
    let namespace = text.and_then(|text| serde_json::from_str::<Namespace>(&text).ok());
    namespace.is_some_and(|it| it.metadata.deletion_timestamp.is_some())
}
