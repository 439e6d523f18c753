//! The server's decision about a recreation before it begins, by dry runs.
//!
//! A creation can't be stored while the old set has the name. The dry run of a creation with this name
//! passes defaulting, admission and validation before the server finds the old set; a second one with
//! a generated name returns the set as the server would store it.

use anyhow::{Context as _, bail};
use http::Method;
use serde_json::{Value, json};

use super::drive::{is_quota, orphaning};
use crate::cluster::{Cluster, name, text};
use crate::plan::{Subject, normal};
use crate::server::{DryRun, DryVerb, JSON, STATEFUL_SETS, Server, Verdict, ask};

/// Part of the reason if a webhook can't be asked by a dry run.
const NO_DRY_RUN: &str = "does not support dry run";

/// Asks the server about the creation of the new set, and returns it as it would be stored.
///
/// # Errors
///
/// The server would refuse the creation, or can't be asked.
pub(super) async fn creation(
    server: &Server,
    subject: &Subject,
    new: &Value,
) -> anyhow::Result<Value> {
    match dry_run(server, subject, new).await? {
        Verdict::Exists | Verdict::Accepted(_) => {}
        // The old set counts until it is deleted.
        Verdict::Refused(message) if is_quota(403, &message) => {
            server.note(format!(
                "the old set counts for the quota as well: {message}"
            ));
        }
        Verdict::Refused(message) => bail!("the server would refuse the new set: {message}"),
        Verdict::Unknown(reason) if reason.contains(NO_DRY_RUN) => {
            server.note(format!("server-side dry run skipped: {reason}"));
        }
        Verdict::Unknown(reason) => bail!("ask the server about the new set: {reason}"),
    }
    let set_name = name(new);
    let mut unnamed = new.clone();
    if let Some(metadata) = unnamed.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("name");
        metadata.insert("generateName".to_owned(), json!(format!("{set_name}-")));
    }
    let mut stored = match dry_run(server, subject, &unnamed).await? {
        Verdict::Accepted(stored) => stored,
        // The dry run with the set's own name has decided.
        Verdict::Exists | Verdict::Refused(_) | Verdict::Unknown(_) => {
            let own = normal(subject, new);
            own.context("validate the new set, as the server can't be asked")?
        }
    };
    if let Some(metadata) = stored.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("generateName");
        metadata.insert("name".to_owned(), json!(set_name));
    }
    Ok(stored)
}

async fn dry_run(server: &Server, subject: &Subject, set: &Value) -> anyhow::Result<Verdict> {
    let run = DryRun {
        verb: DryVerb::Create,
        resource: &STATEFUL_SETS,
        namespace: &subject.namespace,
        name: "",
        format: JSON,
        query: "",
        body: set,
    };
    ask(server, &run).await
}

/// Asks the server about the deletion of the old set.
///
/// # Errors
///
/// The server would refuse it, or can't be asked.
pub(super) async fn deletion(
    cluster: &Cluster,
    namespace: &str,
    old: &Value,
) -> anyhow::Result<()> {
    let set = name(old);
    let path = format!("{}/{set}", STATEFUL_SETS.path(Some(namespace)));
    let (uid, version) = ("/metadata/uid", "/metadata/resourceVersion");
    let mut options = orphaning(&text(old, uid), &text(old, version));
    // A server that finds options in the body ignores those of the query.
    if let Some(options) = options.as_object_mut() {
        options.insert("dryRun".to_owned(), json!(["All"]));
    }
    match cluster.send(Method::DELETE, &path, Some(&options)).await {
        Ok(_) => Ok(()),
        // A status was written since the set was read.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(kube::Error::Api(status)) if status.message.contains(NO_DRY_RUN) => Ok(()),
        Err(kube::Error::Api(status)) => {
            bail!(
                "the server would refuse to delete StatefulSet {set}: {}",
                status.message
            )
        }
        Err(error) => Err(error).with_context(|| format!("ask about the deletion of {set}")),
    }
}
