//! A write under judgement.

use std::sync::Arc;

use jiff::Timestamp;
use kube_test_control_plane::route::Verb;
use serde_json::Value;

use super::view::View;
use crate::history::Versions;
use crate::record::{Request, Seen, SetKey, Sync};
use crate::views::Pod;

/// A write of a sync.
pub struct Write<'a> {
    /// The request.
    pub request: &'a Request,
    /// Its sync.
    pub sync: &'a Sync,
    /// The versions of the caches when the sync decided.
    pub seen: Seen,
    /// The requests of the sync before it.
    pub earlier: Vec<&'a Request>,
    /// The knowledge of the sync.
    pub view: View<'a>,
    /// The latest time that the sync's clock can have shown.
    pub now: Timestamp,
    /// The earliest time that it can have shown.
    pub early: Timestamp,
    /// Revision of the store when the write was sent: nothing newer can have been its reason.
    pub newest: u64,
}

impl<'a> Write<'a> {
    /// Reports whether it creates an object of this resource.
    pub fn creates(&self, resource: &str) -> bool {
        self.is(Verb::Create, resource)
    }

    /// Reports whether it deletes an object of this resource.
    pub fn deletes(&self, resource: &str) -> bool {
        self.is(Verb::Delete, resource)
    }

    /// Reports whether it changes an object of this resource.
    pub fn changes(&self, resource: &str) -> bool {
        self.is(Verb::Update, resource) || self.is(Verb::Patch, resource)
    }

    /// Reports whether it evicts a pod.
    pub fn evicts(&self) -> bool {
        self.request.evicts()
    }

    fn is(&self, verb: Verb, resource: &str) -> bool {
        let request = self.request;
        let is_other = request.evicts() || request.resizes();
        request.verb == Some(verb) && request.resource == resource && !is_other
    }

    /// Returns the ordinal of the written pod; none if the name has none.
    pub fn ordinal(&self) -> Option<u32> {
        ordinal(&self.request.name, &self.view.set.name)
    }

    /// Returns a text in the body at a JSON pointer.
    pub fn text(&self, pointer: &str) -> Option<String> {
        let body = self.request.json();
        let text = body.pointer(pointer).and_then(Value::as_str);
        text.map(str::to_owned)
    }

    /// Returns the versions of the written object that the sync can have acted on: the one in its
    /// cache when it began, and all later ones up to the moment of sending.
    pub fn versions<'h, T>(
        &self,
        objects: &'h Versions<T>,
        seen: u64,
    ) -> impl Iterator<Item = &'h Arc<T>> {
        objects.during(&self.key(), seen, self.newest)
    }

    /// Reports whether an earlier request of the sync changed the same object in this way.
    pub fn follows(&self, verb: Verb) -> bool {
        let Request { resource, name, .. } = self.request;
        let mut earlier = self.earlier.iter();
        let mut earlier = earlier.by_ref().filter(|it| !it.resizes());
        earlier.any(|it| it.verb == Some(verb) && it.resource == *resource && it.name == *name)
    }

    /// Returns the key of the written object.
    pub fn key(&self) -> SetKey {
        (self.request.namespace.clone(), self.request.name.clone())
    }

    /// Names the write in a message.
    pub fn named(&self) -> String {
        self.request.named()
    }

    /// Returns the pod that a deletion or an eviction hits, as the sync knew it.
    pub fn deleted_pod(&self) -> Option<(u32, &'a Arc<Pod>)> {
        let removes = self.deletes("pods") || self.evicts();
        let ordinal = removes.then(|| self.ordinal())??;
        Some((ordinal, *self.view.members.get(&ordinal)?))
    }

    /// Returns the uid of the only pod that a deletion or an eviction may hit.
    pub fn deleted_uid(&self) -> Option<String> {
        let pointer = if self.evicts() {
            "/deleteOptions/preconditions/uid"
        } else {
            "/preconditions/uid"
        };
        self.text(pointer)
    }
}

/// Returns the ordinal in a pod's name.
pub(super) fn ordinal(pod: &str, set: &str) -> Option<u32> {
    let digits = pod.strip_prefix(set)?.strip_prefix('-')?;
    let ordinal: u32 = digits.parse().ok()?;
    (ordinal.to_string() == digits).then_some(ordinal)
}
