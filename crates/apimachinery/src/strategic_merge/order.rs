//! The order of a merged list: what the patch names in the patch's order, the rest where the
//! server had it.
//!
//! Upstream: `normalizeElementOrder`.

use serde_json::Value;

/// Tells which elements are the same: by a member, or as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity(pub(super) Option<&'static str>);

impl Identity {
    pub(super) fn same(self, a: &Value, b: &Value) -> bool {
        match self.0 {
            Some(key) => a.get(key).is_some() && a.get(key) == b.get(key),
            None => a == b,
        }
    }

    pub(super) fn position(self, list: &[Value], item: &Value) -> Option<usize> {
        list.iter().position(|other| self.same(other, item))
    }
}

/// Orders `merged`: `wanted` is the order that the patch asks for, `server` the order before.
pub(super) fn normalize(
    identity: Identity,
    merged: Vec<Value>,
    wanted: &[Value],
    server: &[Value],
) -> Vec<Value> {
    let (patched, rest): (Vec<Value>, Vec<Value>) = merged
        .into_iter()
        .partition(|item| identity.position(wanted, item).is_some());
    let patched = sorted(identity, patched, wanted);
    let rest = sorted(identity, rest, server);
    interleave(identity, rest, patched, server)
}

fn sorted(identity: Identity, mut list: Vec<Value>, order: &[Value]) -> Vec<Value> {
    list.sort_by_key(|item| identity.position(order, item).unwrap_or(usize::MAX));
    list
}

/// Takes from `left` only where the server had it before the next of `right`.
fn interleave(
    identity: Identity,
    left: Vec<Value>,
    right: Vec<Value>,
    server: &[Value],
) -> Vec<Value> {
    let mut out = Vec::with_capacity(left.len() + right.len());
    let mut left = left.into_iter().peekable();
    let mut right = right.into_iter().peekable();
    loop {
        let take_left = match (left.peek(), right.peek()) {
            (None, None) => return out,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(l), Some(r)) => {
                match (identity.position(server, l), identity.position(server, r)) {
                    (Some(l), Some(r)) => l < r,
                    _ => false,
                }
            }
        };
        out.extend(if take_left { left.next() } else { right.next() });
    }
}
