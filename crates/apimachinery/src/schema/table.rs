//! The table of types: which members each one has, of which type, when Go writes them, how they
//! merge, and under which numbers protobuf carries them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::parse;

/// The parsed table. It never changes.
static TABLE: LazyLock<Table> = LazyLock::new(parse::parse);

/// All types, by name and by kind.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) types: BTreeMap<&'static str, Type>,
    /// The names of the types of kinds, by apiVersion and kind.
    pub(super) kinds: BTreeMap<(&'static str, &'static str), &'static str>,
    /// Lines that the parser could not read; always empty, which a test makes sure of.
    pub(super) unread: Vec<&'static str>,
}

/// A type: what Go holds in one struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// The type's name in the table: the Go struct's, with a group before a slash where two groups
    /// have a struct of that name (`events/Event`).
    pub name: &'static str,
    /// The apiVersion, if objects of the type are the bodies of requests.
    pub api_version: Option<&'static str>,
    /// Whether server-side apply treats an object of this type as one value.
    pub atomic: bool,
    /// The members in the order in which Go declares them.
    pub fields: Vec<Field>,
}

/// A member of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The member's JSON name.
    pub name: &'static str,
    /// Whether it is written also when it is zero or null.
    pub always: bool,
    /// The embedded Go struct that it comes from.
    pub embedded: Option<&'static str>,
    /// Its number in protobuf messages; none for what protobuf doesn't carry.
    pub tag: Option<Tag>,
    /// What is wrapped around its values.
    pub shape: Shape,
    /// The type of its values.
    pub kind: Kind,
    /// What its line says of how it merges; none where that follows from its type.
    pub(super) topology: Option<Topology>,
    /// What its line says of strategic merge patches; none where that follows from `topology`.
    pub(super) patch: Option<PatchStrategy>,
    /// Whether a strategic merge patch that was made from two objects lists, in `$retainKeys`, the
    /// members that stay.
    pub retain_keys: bool,
}

/// The number of a member in protobuf messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    /// The number of the embedded message that holds the member, where Go embeds a struct.
    pub outer: Option<u32>,
    /// The number of the member itself.
    pub number: u32,
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
    /// Bytes, which JSON holds in base64.
    Bytes,
    /// A resource quantity.
    Quantity,
    /// A number or a text.
    IntOrString,
    /// A time in whole seconds.
    Time,
    /// A time in microseconds.
    MicroTime,
    /// Any JSON value, kept as it is.
    Raw,
    /// A list of texts, as the values of a map.
    Strings,
    /// An object of the type with this name.
    Struct(&'static str),
}

/// How server-side apply merges a member: as one value, or by its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One value, owned and replaced as a whole. Scalars are too.
    Atomic,
    /// An object or a map, whose members are owned one by one.
    Granular,
    /// A list of different values, owned one by one.
    Set,
    /// A list of objects, which these members tell apart.
    Keyed(Vec<ListKey>),
}

/// A member that tells the elements of a list apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListKey {
    /// The member's name.
    pub name: &'static str,
    /// What stands for it in an element that lacks it.
    pub default: Option<&'static str>,
}

/// How a strategic merge patch changes a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchStrategy {
    /// The patch's value takes the place of the old one.
    Replace,
    /// Objects and maps merge member by member, lists of plain values as sets.
    Merge,
    /// The elements of a list merge where this member is equal.
    MergeBy(&'static str),
}

impl Type {
    /// Returns the member `name`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the Go struct's name, as Go's error texts have it.
    pub fn go_name(&self) -> &'static str {
        go_name(self.name)
    }
}

impl Field {
    /// Returns the type of the member's values, if they are objects.
    pub fn object_type(&self) -> Option<&'static Type> {
        match self.kind {
            Kind::Struct(name) => find_type(name),
            _ => None,
        }
    }

    /// Returns how server-side apply merges the member.
    pub fn topology(&self) -> &Topology {
        if let Some(topology) = &self.topology {
            return topology;
        }
        let granular = match self.shape {
            Shape::Map => true,
            Shape::List => false,
            Shape::Plain | Shape::Pointer => self.object_type().is_some_and(|found| !found.atomic),
        };
        if granular {
            &Topology::Granular
        } else {
            &Topology::Atomic
        }
    }

    /// Returns how a strategic merge patch changes the member.
    pub fn patch_strategy(&self) -> PatchStrategy {
        if let Some(patch) = self.patch {
            return patch;
        }
        match (self.shape, &self.topology) {
            (Shape::List, Some(Topology::Keyed(keys))) => {
                keys.first().map_or(PatchStrategy::Replace, |key| {
                    PatchStrategy::MergeBy(key.name)
                })
            }
            (Shape::List, Some(Topology::Set)) | (Shape::Map, _) => PatchStrategy::Merge,
            (Shape::Plain | Shape::Pointer, _) if matches!(self.kind, Kind::Struct(_)) => {
                PatchStrategy::Merge
            }
            _ => PatchStrategy::Replace,
        }
    }
}

/// Returns the type with this name in the table.
pub fn find_type(name: &str) -> Option<&'static Type> {
    TABLE.types.get(name)
}

/// Returns the type of the objects of a kind. `DeleteOptions` are part of every group version.
pub fn type_of_kind(api_version: &str, kind: &str) -> Option<&'static Type> {
    match TABLE.kinds.get(&(api_version, kind)) {
        Some(name) => find_type(name),
        None if kind == "DeleteOptions" => find_type(kind),
        None => None,
    }
}

/// Returns the members of the type `type_name` in the order in which Go declares them.
pub fn fields(type_name: &str) -> Option<&'static [Field]> {
    find_type(type_name).map(|found| found.fields.as_slice())
}

/// Tells whether the type `type_name` has the member `member`.
pub fn is_known(type_name: &str, member: &str) -> bool {
    find_type(type_name).is_some_and(|found| found.field(member).is_some())
}

/// Returns the Go struct's name of the type with this name in the table.
pub(super) fn go_name(type_name: &'static str) -> &'static str {
    type_name.rsplit('/').next().unwrap_or(type_name)
}

/// The whole table, for its tests.
#[cfg(test)]
pub(super) fn table() -> &'static Table {
    &TABLE
}
