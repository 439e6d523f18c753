//! A set with its revisions and the pods that run them.

use std::collections::BTreeMap;

use anyhow::bail;
use serde_json::Value;

use crate::model::{Pod, Revision, Set};
use crate::server::{PODS, REVISIONS, STATEFUL_SETS, Server, decode};

/// A set with its revisions.
pub(crate) struct Revisions {
    /// The set.
    pub(crate) set: Set,
    /// Its revisions, oldest first.
    pub(crate) all: Vec<Revision>,
    /// Names of its pods by revision, in the order of their ordinals.
    pub(crate) pods: BTreeMap<String, Vec<String>>,
}

/// Reads a set with its revisions and pods.
pub(crate) async fn read(
    server: &Server,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Revisions> {
    let set: Set = server.get_existing(&STATEFUL_SETS, namespace, name).await?;
    let uid = &set.metadata.uid;
    let own = |text: &str| {
        let revision: Revision = decode(text)?;
        Ok(revision.metadata.is_controlled_by(uid).then_some(revision))
    };
    let mut revisions = server.list(&REVISIONS, Some(namespace), own).await?;
    revisions.sort_by(|a, b| {
        let order = a.revision.cmp(&b.revision);
        order.then_with(|| a.metadata.name.cmp(&b.metadata.name))
    });
    let own = |text: &str| {
        let pod: Pod = decode(text)?;
        let is_own = pod.metadata.is_controlled_by(uid);
        let key = (set.ordinal(&pod.metadata.name), pod.metadata.name.clone());
        Ok(is_own.then(|| (key, pod.metadata.revision().to_owned())))
    };
    let mut members = server.list(&PODS, Some(namespace), own).await?;
    members.sort();
    let mut pods: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for ((_, name), revision) in members {
        pods.entry(revision).or_default().push(name);
    }
    Ok(Revisions {
        set,
        all: revisions,
        pods,
    })
}

impl Revisions {
    /// Position of a revision by its number or name.
    pub(crate) fn find(&self, wanted: &str) -> anyhow::Result<usize> {
        let is_wanted = |revision: &Revision| {
            revision.metadata.name == wanted || revision.revision.to_string() == wanted
        };
        if let Some(position) = self.all.iter().position(is_wanted) {
            return Ok(position);
        }
        let known = self.all.iter().map(|it| it.revision.to_string());
        let known = known.collect::<Vec<_>>().join(", ");
        let name = &self.set.metadata.name;
        bail!("StatefulSet {name} has no revision {wanted}; its revisions are {known}")
    }
}

/// The recorded template of a revision; null if it has none.
pub(crate) fn template(revision: &Revision) -> &Value {
    const NONE: &Value = &Value::Null;
    revision.data.pointer("/spec/template").unwrap_or(NONE)
}
