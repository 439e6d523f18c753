//! The table of types: which members each one has, of which type, and when Go writes them.
//!
//! The text form is one block per type: its name, then a line per member, `name: type`. A name with
//! `!` is written also when it is zero. `@Name` is the Go struct that the member is embedded from;
//! it shows up in error texts only. Types are `str`, `i32`, `i64`, `bool`, `Quantity`,
//! `IntOrString`, `Time`, `RawObject` (anything, kept as it is), the name of another block, or a
//! Go string type with its package (`v1.PullPolicy`), with `*` (pointer), `[]` (list) or `map<…>`
//! (keys are strings) around it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The text form of the table.
const SOURCES: [&str; 5] = [
    include_str!("types/meta.txt"),
    include_str!("types/pod.txt"),
    include_str!("types/container.txt"),
    include_str!("types/volume.txt"),
    include_str!("types/apps.txt"),
];

/// The parsed table. It never changes.
static TYPES: LazyLock<BTreeMap<&'static str, Vec<Field>>> = LazyLock::new(parse);

/// A member of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The member's JSON name.
    pub name: &'static str,
    /// Whether it is written also when it is zero or null.
    pub always: bool,
    /// The embedded Go struct that it comes from.
    pub embedded: Option<&'static str>,
    /// What is wrapped around its values.
    pub shape: Shape,
    /// The type of its values.
    pub kind: Kind,
}

/// What a member wraps around its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing: absent and zero are the same.
    Plain,
    /// A pointer: null or absent differs from zero.
    Pointer,
    /// A list.
    List,
    /// A map with text keys.
    Map,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text, with the name of its Go type.
    String(&'static str),
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// True or false.
    Bool,
    /// A resource quantity.
    Quantity,
    /// A number or a text.
    IntOrString,
    /// A time in whole seconds.
    Time,
    /// Any JSON value, kept as it is.
    Raw,
    /// An object of the type with this name.
    Struct(&'static str),
}

/// Returns the members of the type `type_name` in the order in which Go declares them.
pub fn fields(type_name: &str) -> Option<&'static [Field]> {
    find_type(type_name).map(|(_, fields)| fields)
}

/// Tells whether the type `type_name` has the member `member`.
pub fn is_known(type_name: &str, member: &str) -> bool {
    fields(type_name).is_some_and(|fields| find(fields, member).is_some())
}

/// Returns the type `type_name`: its name and its members.
pub(super) fn find_type(type_name: &str) -> Option<(&'static str, &'static [Field])> {
    TYPES
        .get_key_value(type_name)
        .map(|(name, fields)| (*name, fields.as_slice()))
}

/// Returns the member `name` among `fields`.
pub(super) fn find<'a>(fields: &'a [Field], name: &str) -> Option<&'a Field> {
    fields.iter().find(|field| field.name == name)
}

/// Returns the names of all types.
#[cfg(test)]
pub(super) fn type_names() -> impl Iterator<Item = &'static str> {
    TYPES.keys().copied()
}

fn parse() -> BTreeMap<&'static str, Vec<Field>> {
    let mut types = BTreeMap::new();
    let lines = SOURCES.iter().flat_map(|source| source.lines());
    let mut members: &mut Vec<Field> = &mut Vec::new();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.trim_start().split_once(": ") {
            None => members = types.entry(line).or_default(),
            Some((name, declared)) => members.push(parse_field(name, declared)),
        }
    }
    types
}

fn parse_field(name: &'static str, declared: &'static str) -> Field {
    let (name, embedded) = match name.split_once('@') {
        Some((name, embedded)) => (name, Some(embedded)),
        None => (name, None),
    };
    let map = || {
        declared
            .strip_prefix("map<")
            .and_then(|of| of.strip_suffix('>'))
    };
    let (shape, kind) = if let Some(of) = declared.strip_prefix('*') {
        (Shape::Pointer, of)
    } else if let Some(of) = declared.strip_prefix("[]") {
        (Shape::List, of)
    } else if let Some(of) = map() {
        (Shape::Map, of)
    } else {
        (Shape::Plain, declared)
    };
    Field {
        name: name.trim_end_matches('!'),
        always: name.ends_with('!'),
        embedded,
        shape,
        kind: parse_kind(kind),
    }
}

fn parse_kind(kind: &'static str) -> Kind {
    match kind {
        "str" => Kind::String("string"),
        "i32" => Kind::Int32,
        "i64" => Kind::Int64,
        "bool" => Kind::Bool,
        "Quantity" => Kind::Quantity,
        "IntOrString" => Kind::IntOrString,
        "Time" => Kind::Time,
        "RawObject" => Kind::Raw,
        named if named.contains('.') => Kind::String(named),
        name => Kind::Struct(name),
    }
}
