//! The table of types: their members, and each member's type, zero-value rule, merge strategy and
//! protobuf number.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use super::parse;

/// The tables, one per version.
static REFERENCE: LazyLock<Table> = LazyLock::new(|| Table::new(Version::V1_36));
static NEWEST: LazyLock<Table> = LazyLock::new(|| Table::new(Version::V1_37));

/// A version of the types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// The types of v1.36.2. Also used for older versions.
    #[default]
    V1_36,
    /// The types of v1.37.0.
    V1_37,
}

impl Version {
    /// The newest version.
    pub const NEWEST: Self = Self::V1_37;

    /// Returns the types to use for Kubernetes 1.`minor`.
    pub fn of_minor(minor: u32) -> Self {
        if minor < 37 { Self::V1_36 } else { Self::V1_37 }
    }

    /// Returns the name of a type in this version.
    pub fn type_name(self, name: &str) -> TypeName<'_> {
        let version = self;
        TypeName { name, version }
    }

    /// Returns the type of this name.
    pub fn find_type(self, name: &str) -> Option<&'static Type> {
        self.table().types.get(name)?.find(self)
    }

    /// Returns the type of a kind. `DeleteOptions` exist in every group version.
    pub fn type_of_kind(self, api_version: &str, kind: &str) -> Option<&'static Type> {
        match self.table().kinds.get(&(api_version, kind)) {
            Some(name) => self.find_type(name),
            None if kind == "DeleteOptions" => self.find_type(kind),
            None => None,
        }
    }

    pub(super) fn table(self) -> &'static Table {
        match self {
            Self::V1_36 => &REFERENCE,
            Self::V1_37 => &NEWEST,
        }
    }
}

/// The name of a type, in a version. A name alone is that of the type in v1.36.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeName<'a> {
    /// The name, see [`Type::name`].
    pub name: &'a str,
    /// The version.
    pub version: Version,
}

impl TypeName<'_> {
    /// Returns the type, if the version has it.
    pub fn find(self) -> Option<&'static Type> {
        self.version.find_type(self.name)
    }
}

impl<'a> From<&'a str> for TypeName<'a> {
    fn from(name: &'a str) -> Self {
        let version = Version::default();
        Self { name, version }
    }
}

impl From<&'static Type> for TypeName<'static> {
    fn from(found: &'static Type) -> Self {
        let Type { name, version, .. } = *found;
        Self { name, version }
    }
}

/// All types, by name and by kind. A program uses few of them, so each is parsed at its first use.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) types: BTreeMap<&'static str, Entry>,
    /// Type names by apiVersion and kind.
    pub(super) kinds: BTreeMap<(&'static str, &'static str), &'static str>,
}

/// A type's block in the sources, and the type once it is parsed.
#[derive(Debug)]
pub(super) struct Entry {
    block: &'static str,
    parsed: OnceLock<Option<Box<Type>>>,
}

impl Table {
    fn new(version: Version) -> Self {
        let (mut types, mut kinds) = (BTreeMap::new(), BTreeMap::new());
        for block in parse::blocks() {
            let Some(head) = parse::head(block, version) else {
                continue;
            };
            if let Some(api_version) = head.api_version {
                kinds.insert((api_version, head.go_name()), head.name);
            }
            let parsed = OnceLock::new();
            types.insert(head.name, Entry { block, parsed });
        }
        Self { types, kinds }
    }
}

impl Entry {
    /// Returns the type; none if a line does not parse, which a test rules out.
    fn find(&self, version: Version) -> Option<&Type> {
        let parsed = self
            .parsed
            .get_or_init(|| parse::block(self.block, version).ok().map(Box::new));
        parsed.as_deref()
    }
}

/// A type: the equivalent of a Go struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// Name in the table: the Go struct's, prefixed with a group and a slash if two groups have a
    /// struct of that name (`events/Event`).
    pub name: &'static str,
    /// The version that has these members.
    pub version: Version,
    /// apiVersion, if requests carry objects of this type.
    pub api_version: Option<&'static str>,
    /// True if server-side apply treats an object of this type as one value.
    pub atomic: bool,
    /// The members in Go's order of declaration.
    pub fields: Vec<Field>,
}

/// A member of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The member's JSON name.
    pub name: &'static str,
    /// True if Go writes it even if it is zero or null.
    pub always: bool,
    /// Embedded Go struct that declares it.
    pub embedded: Option<&'static str>,
    /// Protobuf number; `None` for members that protobuf lacks.
    pub tag: Option<Tag>,
    /// Wrapper around its values.
    pub shape: Shape,
    /// The type of its values.
    pub kind: Kind,
    /// Merge rule on its line; `None` if the rule follows from its type.
    pub(super) topology: Option<Topology>,
    /// Patch strategy on its line; `None` if the strategy follows from `topology`.
    pub(super) patch: Option<PatchStrategy>,
    /// True if a generated strategic merge patch lists the remaining members in `$retainKeys`.
    pub retain_keys: bool,
}

/// Protobuf number of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    /// Number of the embedded message that contains the member, if Go embeds a struct.
    pub outer: Option<u32>,
    /// Number of the member itself.
    pub number: u32,
}

/// Wrapper of a member's values.
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

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A string, with the name of its Go type.
    String(&'static str),
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// True or false.
    Bool,
    /// Bytes, base64-encoded in JSON.
    Bytes,
    /// A resource quantity.
    Quantity,
    /// A number or a string.
    IntOrString,
    /// A time in whole seconds.
    Time,
    /// A time in microseconds.
    MicroTime,
    /// Any JSON value, kept verbatim.
    Raw,
    /// Any JSON, without its order and spelling.
    Json,
    /// A list of strings, as the values of a map.
    Strings,
    /// An object of the type with this name.
    Struct(TypeName<'static>),
}

/// Server-side apply's merge rule of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// As one value, owned and replaced as a whole; also for scalars.
    Atomic,
    /// As an object or a map whose members are owned separately.
    Granular,
    /// As a list of distinct values, owned separately.
    Set,
    /// As a list of objects, identified by these members.
    Keyed(Vec<ListKey>),
}

/// A member that identifies the elements of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListKey {
    /// The member's name.
    pub name: &'static str,
    /// Default for elements that lack it.
    pub default: Option<&'static str>,
}

/// Strategic merge patch's rule for a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchStrategy {
    /// The patch's value replaces the old one.
    Replace,
    /// Objects and maps merge member by member, lists of plain values as sets.
    Merge,
    /// List elements merge if this member is equal.
    MergeBy(&'static str),
}

impl Type {
    /// Returns the member `name`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the Go struct's name, as in Go's error texts.
    pub fn go_name(&self) -> &'static str {
        go_name(self.name)
    }
}

impl Field {
    /// Returns the type of the member's values, if they are objects.
    pub fn object_type(&self) -> Option<&'static Type> {
        match self.kind {
            Kind::Struct(name) => name.find(),
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

/// Returns the type of this name in v1.36.2.
pub fn find_type(name: &str) -> Option<&'static Type> {
    Version::V1_36.find_type(name)
}

/// Returns the type of a kind in v1.36.2, see [`Version::type_of_kind`].
pub fn type_of_kind(api_version: &str, kind: &str) -> Option<&'static Type> {
    Version::V1_36.type_of_kind(api_version, kind)
}

/// Returns the members of the type `type_name` in v1.36.2, in Go's order of declaration.
pub fn fields(type_name: &str) -> Option<&'static [Field]> {
    find_type(type_name).map(|found| found.fields.as_slice())
}

/// Returns true if the type `type_name` has the member `member` in v1.36.2.
pub fn is_known(type_name: &str, member: &str) -> bool {
    find_type(type_name).is_some_and(|found| found.field(member).is_some())
}

/// Returns the Go struct's name of a type.
pub(super) fn go_name(type_name: &'static str) -> &'static str {
    type_name.rsplit('/').next().unwrap_or(type_name)
}
