//! The state of a recreation in the cluster.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;

use super::check::selector;
use super::form::form_of;
use super::record::{Record, manifest};
use super::step::{Found, Observed};
use crate::cluster::text;
use crate::server::{CLAIMS, PODS, REVISIONS, Resource, STATEFUL_SETS, Server, decode};

/// The kinds of a set's objects.
const KINDS: [Kind; 3] = [Kind::Pod, Kind::Claim, Kind::Revision];

/// A kind of a set's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Pod,
    Claim,
    Revision,
}

impl Kind {
    /// The kind in texts.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Claim => "claim",
            Self::Revision => "revision",
        }
    }

    pub(super) fn resource(self) -> &'static Resource {
        match self {
            Self::Pod => &PODS,
            Self::Claim => &CLAIMS,
            Self::Revision => &REVISIONS,
        }
    }

    /// The recorded objects of the kind.
    pub(super) fn recorded(self, record: &Record) -> &BTreeMap<String, String> {
        match self {
            Self::Pod => &record.objects.pods,
            Self::Claim => &record.objects.claims,
            Self::Revision => &record.objects.revisions,
        }
    }
}

/// An object of the set, by its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) deletion_timestamp: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) owner_references: Vec<Value>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    metadata: Metadata,
}

impl Metadata {
    /// The owner that controls the object.
    pub(super) fn controller(&self) -> Option<&Value> {
        let mut owners = self.owner_references.iter();
        owners.find(|owner| owner.get("controller") == Some(&Value::Bool(true)))
    }
}

/// The objects that a recreation concerns, by kind and name.
pub(super) type Dependents = BTreeMap<(Kind, String), Metadata>;

/// One look at the cluster.
pub(super) struct Look {
    pub(super) set: Option<Found>,
    pub(super) dependents: Dependents,
    /// Names and kinds of the objects that the set doesn't control yet.
    unadopted: Vec<String>,
}

impl Look {
    /// Reads the set and its objects.
    ///
    /// # Errors
    ///
    /// An object can't be read or decoded.
    pub(super) async fn take(server: &Server, record: &Record) -> anyhow::Result<Self> {
        // The set comes last: an owner that the objects name and that isn't the set is gone then.
        let mut dependents = Dependents::new();
        for kind in KINDS {
            let recorded = kind.recorded(record);
            let keep = |text: &str| {
                let found = decode::<Named>(text)?.metadata;
                let is_own = found
                    .owner_references
                    .iter()
                    .any(|it| names(it, &record.set));
                let is_kept = is_own || recorded.contains_key(&found.name);
                Ok(is_kept.then_some(found))
            };
            let listed = server.list(kind.resource(), Some(&record.namespace), keep);
            let listed = listed.await?.into_iter();
            dependents.extend(listed.map(|found| ((kind, found.name.clone()), found)));
        }
        let namespace = Some(record.namespace.as_str());
        let set = server.get_value(&STATEFUL_SETS, namespace, &record.set);
        let set = set.await?;
        let unadopted = match &set {
            Some(set) => unadopted(set, record, &dependents)?,
            None => Vec::new(),
        };
        Ok(Self {
            set: set.map(|set| found(&set, record)),
            dependents,
            unadopted,
        })
    }

    /// The objects with references to former sets.
    pub(super) fn stale(&self, record: &Record) -> impl Iterator<Item = (Kind, &Metadata)> {
        let uid = self.set.as_ref().map(|set| set.uid.clone());
        let is_stale = move |owner: &Value| {
            names(owner, &record.set) && uid.as_deref() != Some(&text(owner, "/uid"))
        };
        let dependents = self.dependents.iter();
        let stale = dependents.filter(move |(_, it)| it.owner_references.iter().any(&is_stale));
        stale.map(|((kind, _), metadata)| (*kind, metadata))
    }

    /// The state on which the next step depends.
    pub(super) fn observed(&self, record: &Record, is_at_rest: bool) -> Observed {
        Observed {
            set: self.set.clone(),
            has_stale_owners: self.stale(record).next().is_some(),
            is_at_rest,
            unadopted: self.unadopted.clone(),
        }
    }

    /// The uids of the objects and of their owners.
    pub(super) fn ownership(&self) -> BTreeSet<(String, Vec<String>)> {
        let dependents = self.dependents.values();
        let owners = |it: &Metadata| {
            it.owner_references
                .iter()
                .map(|it| text(it, "/uid"))
                .collect()
        };
        dependents.map(|it| (it.uid.clone(), owners(it))).collect()
    }
}

/// Reports whether a reference names a set of this name.
pub(super) fn names(owner: &Value, set: &str) -> bool {
    let of_apps = text(owner, "/apiVersion").starts_with("apps/");
    of_apps && text(owner, "/kind") == "StatefulSet" && text(owner, "/name") == set
}

fn found(set: &Value, record: &Record) -> Found {
    let uid = text(set, "/metadata/uid");
    Found {
        resource_version: text(set, "/metadata/resourceVersion"),
        is_being_deleted: set.pointer("/metadata/deletionTimestamp").is_some(),
        is_original: uid == record.objects.set,
        is_unchanged: manifest(set) == record.old,
        form: form_of(set, &record.old, &record.new),
        uid,
    }
}

/// The recorded pods and revisions without a controller that the set will adopt.
fn unadopted(set: &Value, record: &Record, dependents: &Dependents) -> anyhow::Result<Vec<String>> {
    let selector = selector(set);
    let selector = selector.with_context(|| format!("read the selector of {}", record.set))?;
    let waits = |kind: Kind, it: &Metadata| {
        let is_free = it.controller().is_none() && it.deletion_timestamp.is_none();
        let is_recorded = kind.recorded(record).contains_key(&it.name);
        is_free && is_recorded && kind != Kind::Claim && selector.matches(&it.labels)
    };
    let orphans = dependents.iter().filter(|((kind, _), it)| waits(*kind, it));
    Ok(orphans
        .map(|((kind, name), _)| format!("{} {name}", kind.noun()))
        .collect())
}
