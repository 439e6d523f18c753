//! The objects that concern some sets, as the server has them.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::evidence::Evidence;
use super::groups::{Grouped, Groups, Index, Member};
use super::namespace::Namespace;
use super::stored::Stored;
use crate::model::{Event, Revision, Set};
use crate::server::{
    BUDGETS, CLAIMS, EVENTS, NODES, PODS, REVISIONS, Resource, STATEFUL_SETS, Server, Unreadable,
    decode,
};

/// Reads these sets, or all that aren't settled.
pub(crate) async fn sets(
    server: &Server,
    namespace: Option<&str>,
    names: &[String],
) -> anyhow::Result<Vec<Stored<Set>>> {
    let Some(namespace) = namespace.filter(|_| !names.is_empty()) else {
        let keep = |text: &str| {
            let set: Set = decode(text)?;
            let is_wanted = if names.is_empty() {
                !set.is_settled()
            } else {
                names.contains(&set.metadata.name)
            };
            Ok(is_wanted.then(|| Stored::new(set, text)))
        };
        return server.list(&STATEFUL_SETS, namespace, keep).await;
    };
    let mut sets = Vec::new();
    for name in names {
        let text = server.get_text(&STATEFUL_SETS, namespace, name).await?;
        let action = || format!("decode StatefulSet {namespace}/{name}");
        let set = serde_json::from_str(&text).with_context(action)?;
        sets.push(Stored::new(set, &text));
    }
    Ok(sets)
}

/// A set that doesn't exist yet, by its manifest.
pub(crate) fn planned(manifest: &Value, namespace: &str) -> anyhow::Result<Stored<Set>> {
    let text = manifest.to_string();
    let mut set: Set = serde_json::from_str(&text).context("decode the manifest")?;
    namespace.clone_into(&mut set.metadata.namespace);
    set.metadata.uid.clear();
    Ok(Stored::new(set, &text))
}

/// Reads the sets of all namespaces.
pub(crate) async fn all(server: &Server) -> anyhow::Result<Vec<Stored<Set>>> {
    let keep = |text: &str| Ok(Some(Stored::new(decode(text)?, text)));
    server.list(&STATEFUL_SETS, None, keep).await
}

/// The sets of each namespace.
pub(crate) fn by_namespace(sets: Vec<Stored<Set>>) -> Vec<Vec<Stored<Set>>> {
    let mut groups: BTreeMap<String, Vec<Stored<Set>>> = BTreeMap::new();
    for set in sets {
        let namespace = set.object.metadata.namespace.clone();
        groups.entry(namespace).or_default().push(set);
    }
    groups.into_values().collect()
}

/// Reads the objects that concern some sets of one namespace. Adds the evidence that may not be
/// read to `unread`.
pub(crate) async fn namespace(
    server: &Server,
    sets: Vec<Stored<Set>>,
    now: Timestamp,
    unread: &mut Vec<String>,
) -> anyhow::Result<Namespace> {
    let Some(first) = sets.first() else {
        return Ok(Namespace::empty(now));
    };
    let namespace = first.object.metadata.namespace.clone();
    let index = Index::of(&sets);
    let mut unreadable = Vec::new();
    let pods = groups(
        server,
        &PODS,
        &namespace,
        |it| index.of_pod(it),
        &mut unreadable,
    )
    .await?;
    let claims = groups(
        server,
        &CLAIMS,
        &namespace,
        |it| index.of_claim(it),
        &mut unreadable,
    );
    let claims = claims.await?;
    let of_revision = |it: &Revision| index.of_revision(it);
    let revisions = groups(server, &REVISIONS, &namespace, of_revision, &mut unreadable).await?;
    let known = |uid: &str| index.has(uid) || pods.has(uid) || claims.has(uid);
    let warnings = warnings(server, &namespace, known, unread).await;
    let nodes = if pods.need_nodes() {
        optional(server, &NODES, None, unread).await
    } else {
        Vec::new()
    };
    let budgets = optional(server, &BUDGETS, Some(&namespace), unread).await;
    Ok(Namespace {
        name: namespace,
        now,
        gates: server.gates().await,
        pods,
        claims,
        revisions,
        evidence: Arc::new(Evidence {
            warnings,
            nodes,
            budgets,
            unreadable,
        }),
        sets,
    })
}

/// Reads the objects of a kind that concern sets, by set.
async fn groups<T: DeserializeOwned + Member>(
    server: &Server,
    resource: &Resource,
    namespace: &str,
    sets_of: impl Fn(&T) -> Vec<String>,
    unreadable: &mut Vec<Unreadable>,
) -> anyhow::Result<Groups> {
    let keep = |text: &str| {
        let object: T = decode(text)?;
        let sets = sets_of(&object);
        Ok((!sets.is_empty()).then(|| Grouped::new(&object, sets, text)))
    };
    let listed = server.list_all(resource, Some(namespace), keep).await?;
    unreadable.extend(listed.unreadable);
    Ok(listed.kept)
}

/// Reads the objects of a kind. Without the permission, the answers lack this evidence.
async fn optional<T: DeserializeOwned>(
    server: &Server,
    resource: &Resource,
    namespace: Option<&str>,
    unread: &mut Vec<String>,
) -> Vec<T> {
    let keep = |text: &str| decode(text).map(Some);
    let read = server.list(resource, namespace, keep).await;
    read.unwrap_or_else(|error| {
        unread.push(format!("{error:#}"));
        Vec::new()
    })
}

/// Reads the warnings about these objects. Without the permission, the answers lack this evidence.
async fn warnings(
    server: &Server,
    namespace: &str,
    is_known: impl Fn(&str) -> bool,
    unread: &mut Vec<String>,
) -> BTreeMap<String, Vec<Event>> {
    let keep = |text: &str| {
        let event: Event = decode(text)?;
        let is_wanted = event.kind == "Warning" && is_known(&event.involved_object.uid);
        Ok(is_wanted.then_some(event))
    };
    let mut events = match server.list(&EVENTS, Some(namespace), keep).await {
        Ok(events) => events,
        Err(error) => {
            unread.push(format!("{error:#}"));
            Vec::new()
        }
    };
    events.sort_by_key(|event| std::cmp::Reverse(event.last()));
    let mut by_object: BTreeMap<String, Vec<Event>> = BTreeMap::new();
    for event in events {
        let object = event.involved_object.uid.clone();
        by_object.entry(object).or_default().push(event);
    }
    by_object
}
