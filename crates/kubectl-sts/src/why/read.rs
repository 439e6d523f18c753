//! Snapshots of the objects that concern some sets of a namespace.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use statefulset_client::feature_gates::FeatureGates;

use crate::decide::Objects;
use crate::model::{Budget, Claim, Event, Node, Pod, Revision, Set};
use crate::server::{
    BUDGETS, CLAIMS, EVENTS, NODES, PODS, REVISIONS, Resource, STATEFUL_SETS, Server, Unreadable,
    decode,
};

/// An object as decoded and as the server sent it.
pub(crate) struct Stored<T> {
    pub(crate) object: T,
    pub(crate) text: Box<str>,
}

/// The objects that concern the sets of a namespace.
pub(crate) struct Snapshot {
    pub(crate) namespace: String,
    pub(crate) now: Timestamp,
    /// The gates of the server's version.
    pub(crate) gates: FeatureGates,
    pub(crate) sets: Vec<Stored<Set>>,
    pods: BTreeMap<String, Stored<Pod>>,
    /// Names of pods by the uid of their controller.
    owned: BTreeMap<String, Vec<String>>,
    claims: BTreeMap<String, Stored<Claim>>,
    /// Revisions by the uid of their controller; orphans under the empty one.
    revisions: BTreeMap<String, Vec<Stored<Revision>>>,
    /// Warnings by the uid of their object, the latest first.
    warnings: BTreeMap<String, Vec<Event>>,
    /// Nodes, read only if a pod needs one.
    pub(crate) nodes: Vec<Node>,
    /// Disruption budgets of the namespace.
    budgets: Vec<Budget>,
    /// Pods, claims and revisions that can't be decoded.
    unreadable: Vec<Unreadable>,
}

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
pub(crate) async fn snapshot(
    server: &Server,
    sets: Vec<Stored<Set>>,
    now: Timestamp,
    unread: &mut Vec<String>,
) -> anyhow::Result<Snapshot> {
    let Some(first) = sets.first() else {
        return Ok(Snapshot::empty(now));
    };
    let namespace = first.object.metadata.namespace.clone();
    let uids: BTreeSet<&str> = sets.iter().map(|set| &*set.object.metadata.uid).collect();
    let by_name: BTreeMap<&str, &Set> = {
        let named = sets
            .iter()
            .map(|set| (&*set.object.metadata.name, &set.object));
        named.collect()
    };
    let claimed: BTreeSet<String> = sets
        .iter()
        .flat_map(|set| claim_prefixes(&set.object))
        .collect();
    let of_pod = |pod: &Pod| {
        let owner = pod.metadata.controller();
        owner.is_some_and(|owner| uids.contains(&*owner.uid))
            || split(&pod.metadata.name).is_some_and(|(set, _)| by_name.contains_key(set))
    };
    let of_claim = |claim: &Claim| {
        split(&claim.metadata.name).is_some_and(|(prefix, _)| claimed.contains(prefix))
    };
    let of_revision = |revision: &Revision| {
        let owner = revision.metadata.controller();
        owner.is_none_or(|owner| uids.contains(&*owner.uid))
    };
    let mut unreadable = Vec::new();
    let pods = list(server, &PODS, &namespace, of_pod, &mut unreadable).await?;
    let claims = list(server, &CLAIMS, &namespace, of_claim, &mut unreadable).await?;
    let revisions = list(server, &REVISIONS, &namespace, of_revision, &mut unreadable).await?;
    let known: BTreeSet<&str> = {
        let pods = pods.iter().map(|pod| &*pod.object.metadata.uid);
        let claims = claims.iter().map(|claim| &*claim.object.metadata.uid);
        uids.iter().copied().chain(pods).chain(claims).collect()
    };
    let warnings = warnings(server, &namespace, &known, unread).await;
    let needs_nodes = pods.iter().any(|pod| {
        let pod = &pod.object;
        pod.spec.node_name.is_empty()
            || pod.metadata.deletion_timestamp.is_some()
            || !pod.is_ready()
    });
    let nodes = if needs_nodes {
        let read = server
            .list(&NODES, None, |text| decode(text).map(Some))
            .await;
        read.unwrap_or_else(|error| {
            unread.push(format!("{error:#}"));
            Vec::new()
        })
    } else {
        Vec::new()
    };
    let read = server
        .list(&BUDGETS, Some(&namespace), |text| decode(text).map(Some))
        .await;
    let budgets = read.unwrap_or_else(|error| {
        unread.push(format!("{error:#}"));
        Vec::new()
    });
    let mut owned: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pod in &pods {
        if let Some(owner) = pod.object.metadata.controller() {
            let names = owned.entry(owner.uid.clone()).or_default();
            names.push(pod.object.metadata.name.clone());
        }
    }
    let mut by_owner: BTreeMap<String, Vec<Stored<Revision>>> = BTreeMap::new();
    for revision in revisions {
        let owner = revision.object.metadata.controller();
        let owner = owner.map_or_else(String::new, |owner| owner.uid.clone());
        by_owner.entry(owner).or_default().push(revision);
    }
    Ok(Snapshot {
        namespace,
        now,
        gates: server.gates().await,
        pods: by_name_of(pods, |pod| &pod.metadata.name),
        owned,
        claims: by_name_of(claims, |claim| &claim.metadata.name),
        revisions: by_owner,
        warnings,
        nodes,
        budgets,
        unreadable,
        sets,
    })
}

async fn list<T: DeserializeOwned>(
    server: &Server,
    resource: &Resource,
    namespace: &str,
    is_wanted: impl Fn(&T) -> bool,
    unreadable: &mut Vec<Unreadable>,
) -> anyhow::Result<Vec<Stored<T>>> {
    let keep = |text: &str| {
        let object: T = decode(text)?;
        Ok(is_wanted(&object).then(|| Stored::new(object, text)))
    };
    let listed = server.list_all(resource, Some(namespace), keep).await?;
    unreadable.extend(listed.unreadable);
    Ok(listed.kept)
}

/// Reads the warnings about these objects. Without the right, the answers lack this evidence.
async fn warnings(
    server: &Server,
    namespace: &str,
    uids: &BTreeSet<&str>,
    unread: &mut Vec<String>,
) -> BTreeMap<String, Vec<Event>> {
    let keep = |text: &str| {
        let event: Event = decode(text)?;
        let is_wanted = event.kind == "Warning" && uids.contains(&*event.involved_object.uid);
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

fn by_name_of<T>(
    objects: Vec<Stored<T>>,
    name: impl Fn(&T) -> &String,
) -> BTreeMap<String, Stored<T>> {
    let named = objects
        .into_iter()
        .map(|stored| (name(&stored.object).clone(), stored));
    named.collect()
}

/// Splits a name at its ordinal.
fn split(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('-')
}

/// The names of a set's claims without their ordinals.
fn claim_prefixes(set: &Set) -> impl Iterator<Item = String> {
    let name = &set.metadata.name;
    let templates = set.spec.volume_claim_templates.iter();
    templates.map(move |template| format!("{}-{name}", template.metadata.name))
}

impl<T> Stored<T> {
    fn new(object: T, text: &str) -> Self {
        let text = text.into();
        Self { object, text }
    }
}

impl Snapshot {
    fn empty(now: Timestamp) -> Self {
        Self {
            namespace: String::new(),
            now,
            gates: FeatureGates::default(),
            sets: Vec::new(),
            pods: BTreeMap::new(),
            owned: BTreeMap::new(),
            claims: BTreeMap::new(),
            revisions: BTreeMap::new(),
            warnings: BTreeMap::new(),
            nodes: Vec::new(),
            budgets: Vec::new(),
            unreadable: Vec::new(),
        }
    }

    /// An object that can't be decoded, of the set or with the name of one of its objects.
    pub(crate) fn unreadable(&self, set: &Set) -> Option<&Unreadable> {
        let (uid, name) = (&set.metadata.uid, &set.metadata.name);
        let claims: Vec<String> = claim_prefixes(set).collect();
        self.unreadable.iter().find(|object| {
            let prefix = split(&object.name).map_or("", |(prefix, _)| prefix);
            object.owners.contains(uid)
                || prefix == name
                || claims.iter().any(|claim| claim == prefix)
        })
    }

    /// The number of pods.
    pub(crate) fn pod_count(&self) -> usize {
        self.pods.len()
    }

    /// A pod by its name.
    pub(crate) fn pod(&self, name: &str) -> Option<&Pod> {
        self.pods.get(name).map(|pod| &pod.object)
    }

    /// A claim by its name.
    pub(crate) fn claim(&self, name: &str) -> Option<&Claim> {
        self.claims.get(name).map(|claim| &claim.object)
    }

    /// All claims.
    pub(crate) fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.claims.values().map(|claim| &claim.object)
    }

    /// A node by its name.
    pub(crate) fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.metadata.name == name)
    }

    /// The pods that a set controls.
    pub(crate) fn pods_of<'a>(&'a self, set: &'a Set) -> impl Iterator<Item = &'a Pod> {
        let names = self.owned.get(&set.metadata.uid).into_iter().flatten();
        names.filter_map(|name| self.pod(name))
    }

    /// The budgets that select one of the set's pods.
    pub(crate) fn budgets_of<'a>(&'a self, set: &'a Set) -> impl Iterator<Item = &'a Budget> {
        let budgets = self.budgets.iter();
        budgets.filter(|budget| {
            let mut pods = self.pods_of(set);
            pods.any(|pod| budget.selects(&pod.metadata.labels))
        })
    }

    /// The revisions of a set, oldest first.
    pub(crate) fn revisions_of(&self, set: &Set) -> Vec<&Revision> {
        let own = self.revisions.get(&set.metadata.uid).into_iter().flatten();
        let mut revisions: Vec<&Revision> = own.map(|stored| &stored.object).collect();
        revisions.sort_by_key(|revision| revision.revision);
        revisions
    }

    /// The warnings about an object, the latest first.
    pub(crate) fn warnings(&self, uid: &str) -> &[Event] {
        self.warnings.get(uid).map_or(&[], Vec::as_slice)
    }

    /// The objects on which the controller decides about a set.
    pub(crate) fn objects<'a>(&'a self, set: &'a Stored<Set>) -> Objects<'a> {
        let (uid, name) = (&set.object.metadata.uid, &set.object.metadata.name);
        let own = self
            .owned
            .get(uid)
            .into_iter()
            .flatten()
            .map(String::as_str);
        let mut pods: BTreeSet<&str> = own.collect();
        let named = with_prefix(&self.pods, name);
        pods.extend(named.filter(|pod| set.object.ordinal(pod).is_some()));
        let pods = pods.into_iter().filter_map(|pod| self.pods.get(pod));
        let prefixes: Vec<String> = claim_prefixes(&set.object).collect();
        let claims = prefixes.iter().flat_map(|prefix| {
            let named = with_prefix(&self.claims, prefix);
            let own = named.filter(move |name| split(name).is_some_and(|it| it.0 == prefix));
            own.filter_map(|name| self.claims.get(name))
        });
        let recorded = self.revisions.get(uid).into_iter().flatten();
        let orphans = self.revisions.get("").into_iter().flatten();
        let orphans = orphans.filter(|it| it.object.metadata.name.starts_with(name.as_str()));
        Objects {
            set: &set.text,
            pods: pods.map(|pod| &*pod.text).collect(),
            claims: claims.map(|claim| &*claim.text).collect(),
            revisions: recorded.chain(orphans).map(|it| &*it.text).collect(),
        }
    }
}

/// The names in a map that begin with a prefix and a dash.
fn with_prefix<'a, T>(
    objects: &'a BTreeMap<String, Stored<T>>,
    prefix: &str,
) -> impl Iterator<Item = &'a str> {
    let start = format!("{prefix}-");
    let from = objects.range(start.clone()..);
    from.map(|(name, _)| name.as_str())
        .take_while(move |name| name.starts_with(start.as_str()))
}
