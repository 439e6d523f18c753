//! Sets of fields, as trees of path elements.
//!
//! A set can hold a field without its children, and children without their parent. Each node is a
//! member or has members below it.

use std::cmp::Ordering;

use super::path::{Path, PathElement};

/// A set of an object's fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set {
    /// Sorted by element, without duplicates.
    nodes: Vec<Node>,
}

/// A field that is in the set or has such descendants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// The step from the parent.
    pub(crate) element: PathElement,
    /// True if the field itself is in the set.
    pub member: bool,
    /// The descendants in the set.
    pub(crate) children: Set,
}

impl Set {
    /// The empty set.
    pub(crate) const EMPTY: Self = Self { nodes: Vec::new() };

    /// Returns true if the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the nodes right below the root, in order.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the node of a field below the root.
    pub(crate) fn get(&self, element: &PathElement) -> Option<&Node> {
        let found = self.position(element).ok()?;
        self.nodes.get(found)
    }

    /// Returns true if the field at `path` itself is in the set.
    pub(crate) fn has(&self, path: &[PathElement]) -> bool {
        let Some((first, rest)) = path.split_first() else {
            return false;
        };
        self.get(first).is_some_and(|node| {
            if rest.is_empty() {
                node.member
            } else {
                node.children.has(rest)
            }
        })
    }

    /// Adds the field at `path`, without its parents.
    pub(crate) fn insert(&mut self, path: &[PathElement]) {
        if let Some((first, rest)) = path.split_first() {
            let mut children = Self::EMPTY;
            children.insert(rest);
            self.add(first.clone(), rest.is_empty(), children);
        }
    }

    /// Adds a field right below the root (if `member`) and its descendants.
    pub(crate) fn add(&mut self, element: PathElement, member: bool, children: Self) {
        if !member && children.is_empty() {
            return;
        }
        // Objects are walked in order, so most elements belong at the end.
        let at = match self.nodes.last() {
            Some(last) if last.element < element => Err(self.nodes.len()),
            None => Err(0),
            Some(_) => self.position(&element),
        };
        match at {
            Ok(found) => {
                let node = &mut self.nodes[found];
                node.member |= member;
                node.children = node.children.union(&children);
            }
            Err(position) => {
                let node = Node {
                    element,
                    member,
                    children,
                };
                self.nodes.insert(position, node);
            }
        }
    }

    fn position(&self, element: &PathElement) -> Result<usize, usize> {
        self.nodes
            .binary_search_by(|node| node.element.cmp(element))
    }

    /// Returns the fields in either set.
    pub(crate) fn union(&self, other: &Self) -> Self {
        self.zip(other, |left, right| match (left, right) {
            (Some(left), Some(right)) => (
                left.member || right.member,
                left.children.union(&right.children),
            ),
            (Some(one), None) | (None, Some(one)) => (one.member, one.children.clone()),
            (None, None) => (false, Self::EMPTY),
        })
    }

    /// Returns the fields in both sets.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        self.zip(other, |left, right| match (left, right) {
            (Some(left), Some(right)) => (
                left.member && right.member,
                left.children.intersection(&right.children),
            ),
            _ => (false, Self::EMPTY),
        })
    }

    /// Returns the fields in this set but not in the other.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        self.zip(other, |left, right| match (left, right) {
            (Some(left), Some(right)) => (
                left.member && !right.member,
                left.children.difference(&right.children),
            ),
            (Some(left), None) => (left.member, left.children.clone()),
            (None, _) => (false, Self::EMPTY),
        })
    }

    /// Returns the fields in this set that are neither in the other nor below one of its fields.
    pub(crate) fn recursive_difference(&self, other: &Self) -> Self {
        self.zip(other, |left, right| match (left, right) {
            (Some(_), Some(right)) if right.member => (false, Self::EMPTY),
            (Some(left), Some(right)) => (
                left.member,
                left.children.recursive_difference(&right.children),
            ),
            (Some(left), None) => (left.member, left.children.clone()),
            (None, _) => (false, Self::EMPTY),
        })
    }

    /// Combines two sets node by node.
    fn zip(
        &self,
        other: &Self,
        combine: impl Fn(Option<&Node>, Option<&Node>) -> (bool, Self),
    ) -> Self {
        let mut nodes = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        let (mut left, mut right) = (self.nodes.iter().peekable(), other.nodes.iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some(left), Some(right)) => left.element.cmp(&right.element),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return Self { nodes },
            };
            let pair = match order {
                Ordering::Less => (left.next(), None),
                Ordering::Equal => (left.next(), right.next()),
                Ordering::Greater => (None, right.next()),
            };
            let (member, children) = combine(pair.0, pair.1);
            if let Some(node) = pair.0.or(pair.1)
                && (member || !children.is_empty())
            {
                let element = node.element.clone();
                nodes.push(Node {
                    element,
                    member,
                    children,
                });
            }
        }
    }

    /// Changes each node's membership and children, and drops empty nodes.
    pub(crate) fn map(&self, change: impl Fn(&Node) -> (bool, Self)) -> Self {
        let nodes = self.nodes.iter().filter_map(|node| {
            let (member, children) = change(node);
            let element = node.element.clone();
            (member || !children.is_empty()).then_some(Node {
                element,
                member,
                children,
            })
        });
        Self {
            nodes: nodes.collect(),
        }
    }

    /// Returns the paths in the set: the level below the root first, then the descendants of each
    /// node.
    pub(crate) fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut Path, paths: &mut Vec<Path>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            let mut path = prefix.clone();
            path.push(node.element.clone());
            paths.push(path);
        }
        for node in &self.nodes {
            prefix.push(node.element.clone());
            node.children.collect_paths(prefix, paths);
            prefix.pop();
        }
    }
}

/// Builds a set from paths of members.
impl<'a, const N: usize> From<[&'a [&'a str]; N]> for Set {
    fn from(paths: [&'a [&'a str]; N]) -> Self {
        let mut set = Self::EMPTY;
        for path in paths {
            let path: Path = path.iter().map(|name| PathElement::field(name)).collect();
            set.insert(&path);
        }
        set
    }
}

#[cfg(test)]
mod tests;
