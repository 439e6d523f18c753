//! The objects that concern some sets, as the server has them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Context as _;
use jiff::Timestamp;
use kube_apimachinery::error_line::error_line;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::events::{Events, RelatedEvent};
use super::evidence::Evidence;
use super::groups::{GroupedObject, Groups, Index, Member};
use super::names::{claim_prefixes, split};
use super::namespace::Namespace;
use super::stored::StoredObject;
use crate::model::{Claim, Event, Revision, Set, Volume};
use crate::server::{
    BUDGETS, CLAIMS, EVENTS, NODES, PODS, REVISIONS, Resource, STATEFUL_SETS, Server, Unreadable,
    VOLUMES, decode,
};

/// Reads the sets that aren't settled, whose claims don't have the sizes for which they ask, or that
/// have a claim which is being deleted. Without permission to list claims, the answers lack the last.
pub(crate) async fn unsettled(
    server: &Server,
    namespace: Option<&str>,
    unread: &mut Vec<String>,
) -> anyhow::Result<Vec<StoredObject<Set>>> {
    let deleted = |text: &str| {
        let claim: Claim = decode(text)?;
        let metadata = claim.metadata;
        let is_deleted = metadata.deletion_timestamp.is_some();
        Ok(is_deleted.then_some((metadata.namespace, metadata.name)))
    };
    let listed = server.list_all(&CLAIMS, namespace, deleted).await;
    let deleted: BTreeSet<(String, String)> = match listed {
        Ok(listed) => listed.kept,
        Err(error) => {
            unread.push(error_line(error.as_ref()));
            BTreeSet::new()
        }
    };
    let prefixes = deleted.iter().filter_map(|(namespace, name)| {
        let (prefix, _) = split(name)?;
        Some((namespace.as_str(), prefix))
    });
    let prefixes: BTreeSet<(&str, &str)> = prefixes.collect();
    let keep = |text: &str| {
        let set: Set = decode(text)?;
        let namespace = &set.metadata.namespace;
        let has_deleted_claim = claim_prefixes(&set)
            .any(|prefix| prefixes.contains(&(namespace.as_str(), prefix.as_str())));
        let mut mounted = set.spec.mounted_claims();
        let mounts_deleted_claim =
            mounted.any(|name| deleted.contains(&(namespace.clone(), name.to_owned())));
        drop(mounted);
        let is_wanted = !set.is_settled()
            || set.lacks_claim_sizes().is_some()
            || has_deleted_claim
            || mounts_deleted_claim;
        Ok(is_wanted.then(|| StoredObject::new(set, text)))
    };
    server.list(&STATEFUL_SETS, namespace, keep).await
}

/// Reads these sets.
pub(crate) async fn sets(
    server: &Server,
    namespace: &str,
    names: &[String],
) -> anyhow::Result<Vec<StoredObject<Set>>> {
    let mut sets = Vec::new();
    for name in names {
        let text = server.get_text(&STATEFUL_SETS, namespace, name).await?;
        let action = || format!("decode StatefulSet {namespace}/{name}");
        let set = serde_json::from_str(&text).with_context(action)?;
        sets.push(StoredObject::new(set, &text));
    }
    Ok(sets)
}

/// A set that doesn't exist yet, by its manifest.
pub(crate) fn planned(manifest: &Value, namespace: &str) -> anyhow::Result<StoredObject<Set>> {
    let text = manifest.to_string();
    let mut set: Set = serde_json::from_str(&text).context("decode the manifest")?;
    namespace.clone_into(&mut set.metadata.namespace);
    set.metadata.uid.clear();
    Ok(StoredObject::new(set, &text))
}

/// Reads the sets of all namespaces.
pub(crate) async fn all(server: &Server) -> anyhow::Result<Vec<StoredObject<Set>>> {
    let keep = |text: &str| Ok(Some(StoredObject::new(decode(text)?, text)));
    server.list(&STATEFUL_SETS, None, keep).await
}

/// The sets of each namespace.
pub(crate) fn by_namespace(sets: Vec<StoredObject<Set>>) -> Vec<Vec<StoredObject<Set>>> {
    let mut groups: BTreeMap<String, Vec<StoredObject<Set>>> = BTreeMap::new();
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
    sets: Vec<StoredObject<Set>>,
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
    let events = events(server, &namespace, &index, known, unread).await;
    let volumes = volumes(server, claims.volumes(), unread).await;
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
            events,
            nodes,
            budgets,
            volumes,
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
        Ok((!sets.is_empty()).then(|| GroupedObject::new(&object, sets, text)))
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
        unread.push(error_line(error.as_ref()));
        Vec::new()
    })
}

/// Reads the events about these objects and about earlier pods of the sets. Without the
/// permission, the answers lack this evidence.
async fn events(
    server: &Server,
    namespace: &str,
    index: &Index,
    is_known: impl Fn(&str) -> bool,
    unread: &mut Vec<String>,
) -> Events {
    let keep = |text: &str| {
        let event: Event = decode(text)?;
        let object = &event.involved_object;
        let explains = event.is_warning() || object.kind == "StatefulSet" || event.is_killing();
        Ok(if is_known(&object.uid) {
            Some(if explains {
                RelatedEvent::Existing(event)
            } else {
                RelatedEvent::Noticed(event.involved_object.uid)
            })
        } else if event.is_warning() && object.kind == "Pod" && index.has_pod(&object.name) {
            Some(RelatedEvent::Earlier(event))
        } else {
            None
        })
    };
    let related = server.list(&EVENTS, Some(namespace), keep).await;
    Events::new(related.unwrap_or_else(|error| {
        unread.push(error_line(error.as_ref()));
        Vec::new()
    }))
}

/// Reads these volumes. Without the permission, the answers lack this evidence.
async fn volumes(
    server: &Server,
    names: impl Iterator<Item = &str>,
    unread: &mut Vec<String>,
) -> BTreeMap<String, Volume> {
    let mut volumes = BTreeMap::new();
    for name in names {
        let read = server.get(&VOLUMES, None, name).await;
        let volume = read.and_then(|text| text.map(|text| decode(&text)).transpose());
        match volume {
            Ok(volume) => volumes.extend(volume.map(|volume| (name.to_owned(), volume))),
            Err(error) => unread.push(error_line(error.as_ref())),
        }
    }
    volumes
}
