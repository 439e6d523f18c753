//! The set that a plan is about, and the objects that concern it.

use std::collections::BTreeMap;

use anyhow::anyhow;
use jiff::Timestamp;
use serde_json::Value;

use super::change;
use super::owners;
use super::situation::Situation;
use crate::Session;
use crate::cli::PlanArguments;
use crate::model::Metadata;
use crate::objects::{Snapshot, read};
use crate::server::{NAMESPACES, STATEFUL_SETS, Server};

/// A set as the cluster has it.
pub(crate) struct Subject {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) snapshot: Snapshot,
    /// The manifest of the arguments.
    pub(crate) file: Option<Value>,
    arguments: PlanArguments,
    owners: BTreeMap<String, bool>,
    namespace_ends: bool,
    now: Timestamp,
}

impl Subject {
    /// Reads the set of these arguments, and the objects that concern it.
    ///
    /// # Errors
    ///
    /// The manifest or the set can't be read, or an object of the set can't be decoded.
    pub(crate) async fn read(
        server: &Server,
        session: &Session,
        arguments: PlanArguments,
    ) -> anyhow::Result<Self> {
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
                change::text(file, "/metadata/namespace").to_owned()
            }
            _ => session.namespace.clone(),
        };
        let snapshot = snapshot(server, session, &namespace, &name, file.as_ref()).await?;
        if let Some(set) = &snapshot.set
            && let Some(object) = snapshot.unreadable(&set.object)
        {
            return Err(anyhow!(
                "{object}; the controller waits until it can be decoded"
            ));
        }
        Ok(Self {
            owners: owners::existing(server, &namespace, &name, &snapshot).await,
            namespace_ends: is_ending(server, &namespace).await,
            now: session.now,
            namespace,
            name,
            snapshot,
            file,
            arguments,
        })
    }

    /// The question about a change of the set.
    pub(super) fn situation(&self) -> Situation<'_> {
        Situation {
            namespace: &self.namespace,
            name: &self.name,
            snapshot: &self.snapshot,
            now: self.now,
            arguments: &self.arguments,
            file: self.file.as_ref(),
            owners: &self.owners,
            namespace_ends: self.namespace_ends,
        }
    }
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
