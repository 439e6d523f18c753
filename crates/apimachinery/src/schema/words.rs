//! The words of a field's line in the table of types: protobuf number, wrapper, merge rule.

/// Protobuf number of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    /// Numbers of the embedded messages around the field, outermost first, if Go embeds structs.
    pub outer: [Option<u32>; 2],
    /// Number of the field itself.
    pub number: u32,
}

/// Wrapper of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing: absent and zero are the same.
    Plain,
    /// A pointer: null or absent differs from zero.
    Pointer,
    /// A list.
    List,
    /// A map with string keys.
    Map,
}

/// Server-side apply's merge rule of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// As one value, owned and replaced as a whole; also for scalars.
    Atomic,
    /// As an object or a map whose fields are owned separately.
    Granular,
    /// As a list of distinct values, owned separately.
    Set,
    /// As a list of objects, identified by these fields.
    Keyed(Vec<ListKey>),
}

/// A field that identifies the elements of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListKey {
    /// The field's name.
    pub name: &'static str,
    /// Default for elements that lack it.
    pub default: Option<&'static str>,
}

/// Strategic merge patch's rule for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchStrategy {
    /// The patch's value replaces the old one.
    Replace,
    /// Objects and maps merge field by field, lists of plain values as sets.
    Merge,
    /// List elements merge if this field is equal.
    MergeBy(&'static str),
}

impl Tag {
    /// Reads `3`, or `1.3` for a field of an embedded struct.
    pub(super) fn parse(tag: &str) -> Option<Self> {
        let numbers: Option<Vec<u32>> = tag.split('.').map(|number| number.parse().ok()).collect();
        let (outer, number) = match *numbers? {
            [number] => ([None, None], number),
            [outer, number] => ([Some(outer), None], number),
            [outer, inner, number] => ([Some(outer), Some(inner)], number),
            _ => return None,
        };
        Some(Self { outer, number })
    }

    /// Returns the numbers on the way to the field; 0 after its own.
    pub fn path(self) -> [u32; 3] {
        let Self { outer, number } = self;
        match outer {
            [None, _] => [number, 0, 0],
            [Some(outer), None] => [outer, number, 0],
            [Some(outer), Some(inner)] => [outer, inner, number],
        }
    }
}

impl Shape {
    /// Splits a declared type into its wrapper and the type in it.
    pub(super) fn split(declared: &'static str) -> (Self, &'static str) {
        let of_map = || declared.strip_prefix("map<")?.strip_suffix('>');
        if let Some(of) = declared.strip_prefix('*') {
            (Self::Pointer, of)
        } else if let Some(of) = declared.strip_prefix("[]") {
            (Self::List, of)
        } else if let Some(of) = of_map() {
            (Self::Map, of)
        } else {
            (Self::Plain, declared)
        }
    }
}

impl ListKey {
    /// Reads `containerPort,protocol:TCP`.
    pub(super) fn parse_list(keys: &'static str) -> Vec<Self> {
        let key = |key: &'static str| match key.split_once(':') {
            Some((name, default)) => Self {
                name,
                default: Some(default),
            },
            None => Self {
                name: key,
                default: None,
            },
        };
        keys.split(',').map(key).collect()
    }
}
