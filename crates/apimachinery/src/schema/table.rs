//! The table of types: their fields, and each field's type, zero-value rule, merge strategy and
//! protobuf number. Its text is in [`sources`].

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use super::sources;
use super::words::{ListKey, PatchStrategy, Shape, Tag, Topology};

/// The tables, one per version.
static V1_36: LazyLock<Table> = LazyLock::new(|| Table::new(Version::V1_36));
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
            Self::V1_36 => &V1_36,
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
    pub(super) types: HashMap<&'static str, Entry>,
    /// Type names by apiVersion and kind.
    pub(super) kinds: HashMap<(&'static str, &'static str), &'static str>,
}

/// A type's block in the sources, and the type once it is parsed.
#[derive(Debug)]
pub(super) struct Entry {
    block: &'static str,
    parsed: OnceLock<Option<Box<Type>>>,
}

impl Table {
    fn new(version: Version) -> Self {
        let (mut types, mut kinds) = (HashMap::new(), HashMap::new());
        for block in sources::blocks() {
            let Some(head) = parse_head(block, version) else {
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
            .get_or_init(|| parse_block(self.block, version).ok().map(Box::new));
        parsed.as_deref()
    }
}

/// A type: the equivalent of a Go struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// Name in the table: the Go struct's, prefixed with a group and a slash if two groups have a
    /// struct of that name (`events/Event`).
    pub name: &'static str,
    /// The version that has these fields.
    pub version: Version,
    /// apiVersion, if requests carry objects of this type.
    pub api_version: Option<&'static str>,
    /// Go package in error texts.
    pub package: &'static str,
    /// True if server-side apply treats an object of this type as one value.
    pub atomic: bool,
    /// The fields in Go's order of declaration.
    pub fields: Vec<Field>,
}

/// A field of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field's JSON name.
    pub name: &'static str,
    /// True if Go writes it even if it is zero or null.
    pub always: bool,
    /// Embedded Go struct that declares it.
    pub embedded: Option<&'static str>,
    /// Protobuf number; `None` for fields that protobuf lacks.
    pub tag: Option<Tag>,
    /// Wrapper around its values.
    pub shape: Shape,
    /// The type of its values.
    pub kind: Kind,
    /// Merge rule on its line; `None` if the rule follows from its type.
    pub(super) topology: Option<Topology>,
    /// Patch strategy on its line; `None` if the strategy follows from `topology`.
    pub(super) patch: Option<PatchStrategy>,
    /// True if a generated strategic merge patch lists the remaining fields in `$retainKeys`.
    pub retain_keys: bool,
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
    /// A 64-bit floating-point number.
    Float,
    /// An object of the type with this name.
    Struct(TypeName<'static>),
    /// An object of the type with this name, or an alternative, which Go decodes by hand.
    Either(TypeName<'static>, Alternative),
}

/// The alternative to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alternative {
    /// True or false.
    Bool,
    /// A list of such objects.
    List,
    /// A list of strings.
    Strings,
}

impl Type {
    /// Returns the field `name`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the Go struct's name, as in Go's error texts.
    pub fn go_name(&self) -> &'static str {
        go_name(self.name)
    }

    /// Returns the Go struct's name with its package, as in Go's error texts.
    pub fn go_type(&self) -> String {
        format!("{}.{}", self.package, self.go_name())
    }
}

impl Field {
    /// Returns the type of the field's values, if they are objects.
    pub fn object_type(&self) -> Option<&'static Type> {
        match self.kind {
            Kind::Struct(name) | Kind::Either(name, _) => name.find(),
            _ => None,
        }
    }

    /// Returns how server-side apply merges the field.
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

    /// Returns how a strategic merge patch changes the field.
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

/// Returns the fields of the type `type_name` in v1.36.2, in Go's order of declaration.
pub fn fields(type_name: &str) -> Option<&'static [Field]> {
    find_type(type_name).map(|found| found.fields.as_slice())
}

/// Returns true if the type `type_name` has the field `member` in v1.36.2.
pub fn is_known(type_name: &str, member: &str) -> bool {
    find_type(type_name).is_some_and(|found| found.field(member).is_some())
}

/// Returns the Go struct's name of a type.
pub(super) fn go_name(type_name: &'static str) -> &'static str {
    type_name.rsplit('/').next().unwrap_or(type_name)
}

/// Parses a block's first line: a type without its fields.
fn parse_head(block: &'static str, version: Version) -> Option<Type> {
    let mut words = block.lines().next()?.split(' ');
    let mut head = Type {
        name: words.next()?,
        version,
        api_version: None,
        package: "v1",
        atomic: false,
        fields: Vec::new(),
    };
    for word in words {
        match word.split_once('=') {
            Some(("kind", api_version)) => head.api_version = Some(api_version),
            Some(("package", package)) => head.package = package,
            None if word == "atomic" => head.atomic = true,
            _ => return None,
        }
    }
    Some(head)
}

/// Parses a block.
///
/// # Errors
/// Fails with a line that is neither a type nor a field.
pub(super) fn parse_block(block: &'static str, version: Version) -> Result<Type, &'static str> {
    let mut parsed = parse_head(block, version).ok_or(block)?;
    for line in block.lines().skip(1) {
        let member = line.strip_prefix("  ").ok_or(line)?;
        let (member, since) = parse_since(member).ok_or(line)?;
        let field = parse_field(member, version).ok_or(line)?;
        if since <= version {
            parsed.fields.push(field);
        }
    }
    parsed.fields.shrink_to_fit();
    Ok(parsed)
}

/// Splits a field's line into the rest and the version in which the field appeared; `None` if
/// there is no such version.
fn parse_since(member: &'static str) -> Option<(&'static str, Version)> {
    match member.rsplit_once(" since=") {
        None => Some((member, Version::V1_36)),
        Some((member, "1.37")) => Some((member, Version::V1_37)),
        Some(_) => None,
    }
}

fn parse_field(member: &'static str, version: Version) -> Option<Field> {
    let (left, right) = member.split_once(": ")?;
    let (tag, name) = left.split_once(' ')?;
    let (name, embedded) = match name.split_once('@') {
        Some((name, embedded)) => (name, Some(embedded)),
        None => (name, None),
    };
    let mut words = right.split(' ');
    let (shape, kind) = Shape::split(words.next()?);
    let mut field = Field {
        name: name.trim_end_matches('!'),
        always: name.ends_with('!'),
        embedded,
        tag: if tag == "-" {
            None
        } else {
            Some(Tag::parse(tag)?)
        },
        shape,
        kind: parse_kind(kind, version),
        topology: None,
        patch: None,
        retain_keys: false,
    };
    for word in words {
        match word.split_once('=') {
            Some(("by", keys)) => field.topology = Some(Topology::Keyed(ListKey::parse_list(keys))),
            Some(("patch", "replace")) => field.patch = Some(PatchStrategy::Replace),
            Some(("patch", key)) => field.patch = Some(PatchStrategy::MergeBy(key)),
            None if word == "atomic" => field.topology = Some(Topology::Atomic),
            None if word == "granular" => field.topology = Some(Topology::Granular),
            None if word == "set" => field.topology = Some(Topology::Set),
            None if word == "retainKeys" => field.retain_keys = true,
            _ => return None,
        }
    }
    Some(field)
}

fn parse_kind(kind: &'static str, version: Version) -> Kind {
    if let Some((name, alternative)) = kind.split_once('|') {
        let alternative = match alternative {
            "bool" => Alternative::Bool,
            "[]" => Alternative::List,
            _ => Alternative::Strings,
        };
        return Kind::Either(TypeName { name, version }, alternative);
    }
    match kind {
        "str" => Kind::String("string"),
        "i32" => Kind::Int32,
        "i64" => Kind::Int64,
        "f64" => Kind::Float,
        "bool" => Kind::Bool,
        "bytes" => Kind::Bytes,
        "Quantity" => Kind::Quantity,
        "IntOrString" => Kind::IntOrString,
        "Time" => Kind::Time,
        "MicroTime" => Kind::MicroTime,
        "RawObject" => Kind::Raw,
        "JSON" => Kind::Json,
        "[]str" => Kind::Strings,
        named if named.contains('.') => Kind::String(named),
        name => Kind::Struct(TypeName { name, version }),
    }
}
