//! Order of a merged list: elements in the patch take the patch's order, the others keep the
//! server's.
//!
//! Upstream: `normalizeElementOrder`.

use std::collections::HashMap;

use serde_json::Value;

/// Identity of list elements: by a field, or by the whole value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity(pub(super) Option<&'static str>);

impl Identity {
    /// Identity of an element; `None` if it lacks the field.
    fn of(self, item: &Value) -> Option<String> {
        match self.0 {
            Some(key) => item.get(key).map(Value::to_string),
            None => Some(item.to_string()),
        }
    }
}

/// Index of list elements by identity.
pub(super) struct Positions {
    identity: Identity,
    positions: HashMap<String, Vec<usize>>,
}

impl Positions {
    /// Indexes the elements of a list.
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

    /// Position of the first element identical to `item`.
    pub(super) fn first(&self, item: &Value) -> Option<usize> {
        let positions = self.positions.get(&self.identity.of(item)?)?;
        positions.first().copied()
    }

    /// Adds an element at the end.
    pub(super) fn add(&mut self, item: &Value, position: usize) {
        if let Some(identity) = self.identity.of(item) {
            self.positions.entry(identity).or_default().push(position);
        }
    }

    /// Removes the elements identical to `item`, and returns their positions.
    pub(super) fn remove(&mut self, item: &Value) -> Vec<usize> {
        let identity = self.identity.of(item);
        identity
            .and_then(|identity| self.positions.remove(&identity))
            .unwrap_or_default()
    }
}

/// Orders `merged`: `wanted` is the order in the patch, `server` the previous order.
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

/// Merges both lists; an element of `left` goes first only if the server had it before the next of
/// `right`.
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
