//! A JSON document that is parsed only where a patch enters it, so that the rest keeps its text.
//!
//! Upstream: `lazyNode` of `gopkg.in/evanphx/json-patch.v4`

use std::collections::BTreeMap;

use kube_apimachinery::json::write_go_str;

use crate::go::json::cursor::Cursor;
use crate::go::json::raw::{Escape, compact_with};

/// A node's index in its document.
pub(super) type NodeId = usize;

/// A value of the document.
#[derive(Clone, Debug)]
enum Node {
    /// No value: a missing member, or a null in the text.
    Missing,
    /// The null of an operation. Unlike the null of a text, it has no text to compare or to enter.
    Null,
    /// A value that no operation has entered. Its text is a null only if an operation copied
    /// [`Node::Null`].
    Text(Vec<u8>),
    /// An object, by member.
    Object(BTreeMap<String, NodeId>),
    /// The object that a copied null becomes: it has no members and accepts none.
    NilObject,
    /// A list.
    List(Vec<NodeId>),
}

/// A document in the form of one node.
///
/// Nodes refer to each other by index, so no operation recurses: a document may be as deep as a
/// patch can make it.
#[derive(Debug)]
pub(super) struct Document {
    nodes: Vec<Node>,
    root: NodeId,
}

/// The holder of a value and the value's name or index in it.
#[derive(Debug)]
pub(super) struct Place {
    holder: NodeId,
    key: String,
}

impl Place {
    /// Returns the name or the index.
    pub(super) fn key(&self) -> &str {
        &self.key
    }
}

impl Document {
    /// Reads the text of a JSON object.
    pub(super) fn new(text: &[u8]) -> Self {
        let mut document = Self {
            nodes: Vec::new(),
            root: 0,
        };
        document.root = document.push(Node::Text(text.to_vec()));
        document.enter(document.root);
        document
    }

    /// Adds the value of an operation; `None` is a missing one.
    pub(super) fn value(&mut self, text: Option<&[u8]>) -> NodeId {
        self.push(match text {
            None => Node::Missing,
            Some(b"null") => Node::Null,
            Some(text) => Node::Text(text.to_vec()),
        })
    }

    /// Replaces the whole document.
    pub(super) fn replace_root(&mut self, value: NodeId) -> Result<(), String> {
        if !self.enter(value) || matches!(self.nodes[value], Node::NilObject) {
            return Err("replace operation value must be object or array".to_owned());
        }
        self.root = value;
        Ok(())
    }

    /// Returns the whole document.
    pub(super) fn root(&self) -> NodeId {
        self.root
    }

    /// Finds the place of a path. Like upstream, ignores everything before the first slash.
    pub(super) fn place(&mut self, path: &str) -> Option<Place> {
        let mut steps = path.split('/').skip(1).map(decoded);
        let mut key = steps.next()?;
        let mut holder = self.root;
        for next in steps {
            holder = self.get(&Place { holder, key }).ok()?;
            if !self.enter(holder) {
                return None;
            }
            key = next;
        }
        Some(Place { holder, key })
    }

    /// Returns the value at a place. An object has a missing value for each missing member.
    pub(super) fn get(&mut self, place: &Place) -> Result<NodeId, String> {
        let found = match &self.nodes[place.holder] {
            Node::List(elements) => Some(elements[index(&place.key, elements.len())?]),
            Node::Object(members) => members.get(&place.key).copied(),
            _ => None,
        };
        Ok(found.unwrap_or_else(|| self.push(Node::Missing)))
    }

    /// Replaces the value at a place, or adds a member.
    pub(super) fn set(&mut self, place: &Place, value: NodeId) -> Result<(), String> {
        match &mut self.nodes[place.holder] {
            Node::List(elements) => {
                let at = index(&place.key, elements.len())?;
                elements[at] = value;
                Ok(())
            }
            _ => self.add(place, value),
        }
    }

    /// Inserts a value before an element, or sets a member.
    pub(super) fn add(&mut self, place: &Place, value: NodeId) -> Result<(), String> {
        match &mut self.nodes[place.holder] {
            Node::List(elements) if place.key == "-" => elements.push(value),
            Node::List(elements) => {
                let at = index(&place.key, elements.len() + 1)?;
                elements.insert(at, value);
            }
            Node::Object(members) => {
                members.insert(place.key.clone(), value);
            }
            _ => return Err("the value has no members".to_owned()),
        }
        Ok(())
    }

    /// Removes the value at a place.
    pub(super) fn remove(&mut self, place: &Place) -> Result<(), String> {
        match &mut self.nodes[place.holder] {
            Node::List(elements) => {
                let at = index(&place.key, elements.len())?;
                elements.remove(at);
                Ok(())
            }
            holder => {
                let removed = match holder {
                    Node::Object(members) => members.remove(&place.key),
                    _ => None,
                };
                let missing = || {
                    let key = &place.key;
                    format!("Unable to remove nonexistent key: {key}: missing value")
                };
                removed.map(drop).ok_or_else(missing)
            }
        }
    }

    /// Copies a value. Returns the copy and the size of its text in bytes.
    pub(super) fn copy(&mut self, id: NodeId) -> (NodeId, usize) {
        if self.is_missing(id) {
            return (self.push(Node::Missing), 0);
        }
        let text = self.text(id);
        let size = text.len();
        (self.push(Node::Text(text)), size)
    }

    /// Returns true if an operation's value passes a test against the value `found`.
    pub(super) fn passes(&mut self, found: NodeId, value: NodeId) -> bool {
        match (&self.nodes[found], &self.nodes[value]) {
            (Node::Missing, Node::Missing | Node::Null) => true,
            (Node::Missing, _) | (_, Node::Missing) => false,
            _ => self.equal(found, value),
        }
    }

    /// Compares two values: objects by member, lists by element, others by their text.
    fn equal(&mut self, left: NodeId, right: NodeId) -> bool {
        let mut pairs = vec![(left, right)];
        while let Some((left, right)) = pairs.pop() {
            let entered = self.enter(left);
            match (&self.nodes[left], &self.nodes[right]) {
                (Node::Missing, Node::Missing) | (Node::Null, Node::Null) => continue,
                (Node::Missing, _) | (_, Node::Missing) => return false,
                (Node::Text(left), Node::Text(right)) if !entered => {
                    if compact_with(left, Escape::Nothing) != compact_with(right, Escape::Nothing) {
                        return false;
                    }
                    continue;
                }
                _ if !entered => return false,
                _ => self.enter(right),
            };
            match (&self.nodes[left], &self.nodes[right]) {
                (Node::List(left), Node::List(right)) if left.len() == right.len() => {
                    // Upstream's handler panics on a null in a list.
                    if left.iter().chain(right).any(|id| self.is_missing(*id)) {
                        return false;
                    }
                    pairs.extend(left.iter().copied().zip(right.iter().copied()));
                }
                (Node::List(_), _) | (_, Node::List(_)) => return false,
                (left, right) => {
                    let (Some(left), Some(right)) = (members(left), members(right)) else {
                        return false;
                    };
                    if !left.keys().eq(right.keys()) {
                        return false;
                    }
                    pairs.extend(left.values().copied().zip(right.values().copied()));
                }
            }
        }
        true
    }

    /// Parses a value down to its members or elements. Returns false if it has none.
    fn enter(&mut self, id: NodeId) -> bool {
        let text = match &mut self.nodes[id] {
            Node::Text(text) if matches!(text.first(), Some(b'{' | b'[' | b'n')) => {
                std::mem::take(text)
            }
            Node::Object(_) | Node::NilObject | Node::List(_) => return true,
            Node::Missing | Node::Null | Node::Text(_) => return false,
        };
        let mut cursor = Cursor::new(&text);
        let node = match text.first() {
            Some(b'{') => {
                let mut members = BTreeMap::new();
                let mut more = cursor.open(b'{', b'}');
                while more {
                    let name = cursor.name();
                    let value = self.push(parsed(cursor.raw()));
                    members.insert(name.into_owned(), value);
                    more = cursor.next(b'}');
                }
                Node::Object(members)
            }
            Some(b'[') => {
                let mut elements = Vec::new();
                let mut more = cursor.open(b'[', b']');
                while more {
                    elements.push(self.push(parsed(cursor.raw())));
                    more = cursor.next(b']');
                }
                Node::List(elements)
            }
            _ => Node::NilObject,
        };
        self.nodes[id] = node;
        true
    }

    fn is_missing(&self, id: NodeId) -> bool {
        matches!(self.nodes[id], Node::Missing)
    }

    fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Returns the text of a value, with the members of entered objects sorted by name.
    pub(super) fn text(&self, id: NodeId) -> Vec<u8> {
        let mut text = Vec::new();
        let mut rest = vec![Piece::Node(id)];
        while let Some(piece) = rest.pop() {
            match piece {
                Piece::Byte(byte) => text.push(byte),
                Piece::Name(name) => {
                    let mut quoted = String::with_capacity(name.len() + 2);
                    write_go_str(name, &mut quoted);
                    text.extend_from_slice(quoted.as_bytes());
                    text.push(b':');
                }
                Piece::Node(id) => match &self.nodes[id] {
                    Node::Missing | Node::Null | Node::NilObject => text.extend_from_slice(b"null"),
                    Node::Text(raw) => text.extend_from_slice(&compact_with(raw, Escape::Html)),
                    Node::List(elements) => {
                        text.push(b'[');
                        rest.push(Piece::Byte(b']'));
                        for (index, element) in elements.iter().enumerate().rev() {
                            rest.push(Piece::Node(*element));
                            if index > 0 {
                                rest.push(Piece::Byte(b','));
                            }
                        }
                    }
                    Node::Object(members) => {
                        text.push(b'{');
                        rest.push(Piece::Byte(b'}'));
                        for (index, (name, value)) in members.iter().enumerate().rev() {
                            rest.push(Piece::Node(*value));
                            rest.push(Piece::Name(name));
                            if index > 0 {
                                rest.push(Piece::Byte(b','));
                            }
                        }
                    }
                },
            }
        }
        text
    }
}

/// A part of the text to write.
enum Piece<'a> {
    Node(NodeId),
    Name(&'a str),
    Byte(u8),
}

fn parsed(raw: &[u8]) -> Node {
    if raw == b"null" {
        Node::Missing
    } else {
        Node::Text(raw.to_vec())
    }
}

/// Returns the members of an object; a nil one has none.
fn members(node: &Node) -> Option<&BTreeMap<String, NodeId>> {
    static NONE: BTreeMap<String, NodeId> = BTreeMap::new();
    match node {
        Node::Object(members) => Some(members),
        Node::NilObject => Some(&NONE),
        _ => None,
    }
}

/// Returns a step of a path without its escapes.
fn decoded(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// Returns the index that a step names in a list of this length. A negative one counts from the
/// end.
///
/// Upstream: `strconv.Atoi` and `SupportNegativeIndices`
fn index(step: &str, len: usize) -> Result<usize, String> {
    let found: i64 = step
        .parse()
        .map_err(|_| format!("strconv.Atoi: parsing {step:?}: invalid syntax"))?;
    let invalid = || format!("Unable to access invalid index: {found}: invalid index referenced");
    let len = i64::try_from(len).map_err(|_| invalid())?;
    let index = if found < 0 { found + len } else { found };
    let index = usize::try_from(index).ok().filter(|_| index < len);
    index.ok_or_else(invalid)
}
