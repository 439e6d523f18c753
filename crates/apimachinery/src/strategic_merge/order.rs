//! The order of a merged list: what the patch names in the patch's order, the rest where the
//! server had it.
//!
//! Upstream: `normalizeElementOrder`.

use std::collections::HashMap;

use serde_json::Value;

/// Tells which elements are the same: by a member, or as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity(pub(super) Option<&'static str>);

impl Identity {
    /// What an element has in common with those that are the same; nothing for one that lacks the
    /// member.
    fn of(self, item: &Value) -> Option<String> {
        match self.0 {
            Some(key) => item.get(key).map(Value::to_string),
            None => Some(item.to_string()),
        }
    }
}

/// Where the elements of a list stand, so that each is found without a walk over the list.
pub(super) struct Positions {
    identity: Identity,
    positions: HashMap<String, Vec<usize>>,
}

impl Positions {
    /// Takes down where the elements of a list stand.
    pub(super) fn of<'a>(identity: Identity, list: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut positions = Self {
            identity,
            positions: HashMap::new(),
        };
        for (position, item) in list.into_iter().enumerate() {
            positions.add(item, position);
        }
        positions
    }

    /// Where the first element stands that is the same as `item`.
    pub(super) fn first(&self, item: &Value) -> Option<usize> {
        let positions = self.positions.get(&self.identity.of(item)?)?;
        positions.first().copied()
    }

    /// Adds an element behind the others.
    pub(super) fn add(&mut self, item: &Value, position: usize) {
        if let Some(identity) = self.identity.of(item) {
            self.positions.entry(identity).or_default().push(position);
        }
    }

    /// Forgets the elements that are the same as `item`, and returns where they stand.
    pub(super) fn remove(&mut self, item: &Value) -> Vec<usize> {
        let identity = self.identity.of(item);
        identity
            .and_then(|identity| self.positions.remove(&identity))
            .unwrap_or_default()
    }
}

/// Orders `merged`: `wanted` is the order that the patch asks for, `server` the order before.
pub(super) fn normalize(
    identity: Identity,
    merged: Vec<Value>,
    wanted: &[Value],
    server: &[Value],
) -> Vec<Value> {
    let wanted = Positions::of(identity, wanted);
    let server = Positions::of(identity, server);
    let (patched, rest): (Vec<Value>, Vec<Value>) = merged
        .into_iter()
        .partition(|item| wanted.first(item).is_some());
    interleave(sorted(rest, &server), sorted(patched, &wanted), &server)
}

fn sorted(mut list: Vec<Value>, order: &Positions) -> Vec<Value> {
    list.sort_by_cached_key(|item| order.first(item).unwrap_or(usize::MAX));
    list
}

/// Takes from `left` only where the server had it before the next of `right`.
fn interleave(left: Vec<Value>, right: Vec<Value>, server: &Positions) -> Vec<Value> {
    let mut out = Vec::with_capacity(left.len() + right.len());
    let mut left = left.into_iter().peekable();
    let mut right = right.into_iter().peekable();
    loop {
        let take_left = match (left.peek(), right.peek()) {
            (None, None) => return out,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(l), Some(r)) => match (server.first(l), server.first(r)) {
                (Some(l), Some(r)) => l < r,
                _ => false,
            },
        };
        out.extend(if take_left { left.next() } else { right.next() });
    }
}
