//! The effects of a recreation: the set is deleted without its dependents, then created again.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use serde::Serialize;
use serde_json::Value;

use super::change;
use super::outcome::Plan;
use super::subject::Subject;
use super::virtual_time::in_virtual_time;
use super::world::{self, Start};
use crate::server::Server;

/// The effects of a recreation.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Recreation {
    /// Pods that are replaced.
    pub(crate) restarts: Vec<String>,
    /// Pods that are removed.
    pub(crate) removals: Vec<String>,
    /// The controller's writes besides the adoption.
    pub(crate) plan: Plan,
}

/// The existing set with the manifest of the arguments applied.
///
/// # Errors
///
/// The set doesn't exist, is being deleted, or the manifest can't be applied.
pub(crate) fn combined(subject: &Subject) -> anyhow::Result<Value> {
    let Subject {
        name, namespace, ..
    } = subject;
    let set = subject.snapshot.set.as_ref();
    let set = set.with_context(|| {
        format!(
            "StatefulSet {name} doesn't exist in namespace {namespace}: a recreation keeps the name"
        )
    })?;
    let situation = subject.situation();
    ensure!(
        !situation.is_ending(),
        "StatefulSet {name} or its namespace is being deleted: a recreation comes too late"
    );
    let parts = change::parts(&situation)?;
    if parts.is_empty() {
        return serde_json::from_str(&set.text).context("decode the set");
    }
    in_virtual_time(|| world::change(&situation, &parts, false)).context("apply the manifest")
}

/// A new set as the embedded server would store it.
///
/// # Errors
///
/// The embedded server rejects it.
pub(crate) fn normal(subject: &Subject, set: &Value) -> anyhow::Result<Value> {
    let situation = subject.situation();
    in_virtual_time(|| world::created(&situation, set))
}

/// Plans the recreation of a set as this one.
///
/// # Errors
///
/// The controller can't run on the copy, or the server can't be asked about an object.
pub(crate) async fn recreation(
    server: &Server,
    subject: &Subject,
    new: &Value,
) -> anyhow::Result<Recreation> {
    let situation = subject.situation();
    let mut course = super::run(server, &situation, Start::Recreated(new)).await?;
    let pods = situation.set().into_iter();
    let pods = pods.flat_map(|set| subject.snapshot.pods_of(set));
    let gone = pods.filter(|pod| !course.ending.pods.contains(&pod.metadata.uid));
    let steps = course.plan.steps.iter();
    let created = steps.filter(|step| step.verb == "create" && step.resource == "pods");
    let created: BTreeSet<&String> = created.map(|step| &step.name).collect();
    let names = gone.map(|pod| pod.metadata.name.clone());
    let (restarts, removals) = names.partition(|name| created.contains(name));
    let is_visible = |verb: &str| verb == "create" || verb == "delete";
    course.plan.steps.retain(|step| is_visible(&step.verb));
    Ok(Recreation {
        restarts,
        removals,
        plan: course.plan,
    })
}
