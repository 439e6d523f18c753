//! Writes, reduced to the changes that a watch can show.

use std::collections::BTreeSet;
use std::fmt;

use kube_apimachinery::json::parse;
use serde_json::Value;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::consistency::TrackedResource;

use crate::dry::{DrySync, DryVerb, DryWrite};

/// A write of a controller, predicted or observed. Two writes are equal if a watch can't tell them
/// apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObservableWrite {
    pub(super) verb: Verb,
    pub(super) resource: TrackedResource,
    pub(super) name: Box<str>,
    /// Revision of a created pod, number of a created revision, uids of a claim's owners, or a whole
    /// status.
    pub(super) detail: String,
}

/// The verb of a write: a watch doesn't show the difference between an update and a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verb {
    Create,
    Change,
    Delete,
}

impl Verb {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Delete => "delete",
        }
    }
}

impl ObservableWrite {
    /// A write to an object whose detail doesn't matter.
    pub(super) fn new(verb: Verb, resource: TrackedResource, name: &str) -> Self {
        Self {
            verb,
            resource,
            name: name.into(),
            detail: String::new(),
        }
    }

    /// Adds the detail.
    pub(super) fn with(self, detail: String) -> Self {
        Self { detail, ..self }
    }

    /// The writes that a sync would send, its status included.
    pub(super) fn predicted(set: &str, sync: &DrySync) -> BTreeSet<Self> {
        let writes = sync.writes.iter().filter(|write| !write.is_refused);
        let status = sync.status.as_deref().map(|body| {
            let status = parse(body).ok().and_then(|set| set.get("status").cloned());
            let status = status.unwrap_or_default().to_string();
            Self::new(Verb::Change, TrackedResource::StatefulSets, set).with(status)
        });
        writes.map(Self::of_write).chain(status).collect()
    }

    fn of_write(write: &DryWrite) -> Self {
        let verb = match write.verb {
            DryVerb::Create => Verb::Create,
            DryVerb::Update | DryVerb::Patch => Verb::Change,
            DryVerb::Delete => Verb::Delete,
        };
        Self::new(verb, write.resource, &write.name).with(detail(verb, write))
    }

    /// True for the status of the set, which is compared only when it stays wrong.
    pub(super) fn is_status(&self) -> bool {
        self.resource == TrackedResource::StatefulSets
    }
}

impl fmt::Display for ObservableWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, plural) = (self.verb.as_str(), self.resource.resource().plural);
        let part = if self.is_status() { "/status" } else { "" };
        write!(f, "{verb} {plural}{part} {}", self.name)?;
        if self.detail.is_empty() {
            return Ok(());
        }
        write!(f, " ({})", self.detail)
    }
}

/// The part of a write's body that a watch shows in the compact objects.
fn detail(verb: Verb, write: &DryWrite) -> String {
    let is_claim = write.resource == TrackedResource::PersistentVolumeClaims;
    if verb == Verb::Delete || (verb == Verb::Change && !is_claim) {
        return String::new();
    }
    let body = parse(&write.body).unwrap_or_default();
    match write.resource {
        TrackedResource::Pods => {
            let revision = body.pointer("/metadata/labels/controller-revision-hash");
            revision
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        }
        TrackedResource::ControllerRevisions => {
            let number = body.get("revision").and_then(Value::as_i64);
            number.unwrap_or_default().to_string()
        }
        TrackedResource::PersistentVolumeClaims => {
            let owners = body.pointer("/metadata/ownerReferences");
            let owners = owners.and_then(Value::as_array).into_iter().flatten();
            let uids = owners.filter_map(|owner| owner.get("uid")?.as_str());
            joined(uids.collect())
        }
        TrackedResource::StatefulSets => String::new(),
    }
}

/// The detail of a claim: the uids of its owners.
pub(super) fn owners(claim: &Claim) -> String {
    let owners = claim.owner_references.iter();
    joined(owners.map(|owner| &*owner.uid).collect())
}

fn joined(mut uids: Vec<&str>) -> String {
    uids.sort_unstable();
    uids.join(" ")
}
