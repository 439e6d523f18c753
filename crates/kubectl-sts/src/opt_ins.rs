//! Control of opt-ins: rollouts pause, continue or make a step, claims grow, and leftovers are removed.
//! These commands write.

mod change;
mod clean;
mod progress;
mod resize;

use serde_json::{Value, json};
use statefulset_controller::opt_ins::Carrier;

use crate::Session;
use crate::cli::{PlanArguments, RolloutArguments};
use crate::cluster::{Cluster, text};
use crate::plan::plan;
use crate::server::{STATEFUL_SETS, Server};
pub(crate) use change::{Change, Rollout};
pub(crate) use clean::clean;
use progress::Progress;
pub(crate) use resize::{Resized, resize};

/// Changes the rollout of a set: shows what the controller would do, then writes the annotations.
///
/// # Errors
///
/// The set can't be read, has no rollout to change, or changed in the meantime.
pub(crate) async fn change(
    server: &Server,
    session: &Session,
    arguments: &RolloutArguments,
    rollout: Rollout,
) -> anyhow::Result<Change> {
    let (namespace, name) = (&session.namespace, &arguments.name);
    let set: Value = server.get_existing(&STATEFUL_SETS, namespace, name).await?;
    let progress = Progress::read(server, session, name).await?;
    let annotations = rollout.annotations(&set, &progress)?;
    let patch = json!({"metadata": {"annotations": annotations}});
    let preview = PlanArguments {
        name: Some(name.clone()),
        patch: Some(patch.to_string()),
        ..PlanArguments::default()
    };
    let plan = plan(server, session, &preview).await?;
    if !arguments.dry_run {
        write(session, &set, json!(annotations)).await?;
    }
    Ok(Change {
        annotations,
        plan,
        is_written: !arguments.dry_run,
    })
}

/// Changes annotations, unless the set changed since it was read.
async fn write(session: &Session, set: &Value, annotations: Value) -> anyhow::Result<()> {
    let (namespace, name) = (&session.namespace, crate::cluster::name(set));
    let patch = json!({"metadata": {
        "resourceVersion": text(set, "/metadata/resourceVersion"),
        "uid": text(set, "/metadata/uid"),
        "annotations": annotations,
    }});
    let path = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}");
    let cluster = Cluster::new(session.client.clone());
    cluster.patch(&path, &patch).await.map(drop)
}

/// Returns the value of a carrier in a set's annotations.
fn carried(set: &Value, carrier: Carrier) -> Option<&str> {
    let annotations = set.pointer("/metadata/annotations")?;
    annotations.get(carrier.annotation())?.as_str()
}
