//! The text form of the table of types.
//!
//! One block per type: a line with its name, then a line per member. An empty line separates
//! blocks. A block that begins with `#` is a comment.
//!
//! ```text
//! Pod kind=v1
//!   - kind@TypeMeta: str
//!   - apiVersion@TypeMeta: str
//!   1 metadata!: ObjectMeta
//!   2 spec!: PodSpec
//!
//! Container
//!   6 ports: []ContainerPort by=containerPort,protocol:TCP
//! ```
//!
//! A type's name is followed by `kind=` and the apiVersion if requests carry the type as a whole
//! object; its kind is the type's name without any prefix up to a slash. `atomic` means that
//! server-side apply treats its objects as one value.
//!
//! A member begins with its protobuf number; `-` if protobuf lacks it or it is not known; two numbers with a dot if Go
//! embeds a struct, whose number comes first. After the name, `!` means that Go writes the member
//! even if it is zero, and `@Name` gives the embedded Go struct that declares it. Types are `str`,
//! `i32`, `i64`, `bool`, `bytes`, `Quantity`, `IntOrString`, `Time`, `MicroTime`, `RawObject` (any
//! JSON, kept verbatim), `JSON`, the name of another block, or a Go string type with its package
//! (`v1.PullPolicy`), wrapped in `*` (pointer), `[]` (list) or `map<…>` (with string keys; values
//! can be `[]str`).
//!
//! The remaining words define how server-side apply merges the member: `atomic`, `granular`, `set`,
//! `by=` and the keys of a list of objects, each optionally with a default after a colon. If there
//! is no word, lists are atomic, maps granular, and objects follow their type. Strategic merge
//! patches use the same word, with the first key, unless `patch=` gives another key or says
//! `replace`; they always merge objects and maps. `retainKeys` is an additional strategy.
//!
//! The last word can be `since=` and the version in which the member appeared, for members that
//! v1.36.2 lacks.

use super::table::Field;
use super::table::Kind;
use super::table::ListKey;
use super::table::PatchStrategy;
use super::table::Shape;
use super::table::Tag;
use super::table::Topology;
use super::table::Type;
use super::table::TypeName;
use super::table::Version;

/// Source files of the table.
const SOURCES: [&str; 26] = [
    include_str!("types/api_service.txt"),
    include_str!("types/apps.txt"),
    include_str!("types/autoscaling.txt"),
    include_str!("types/batch.txt"),
    include_str!("types/certificates.txt"),
    include_str!("types/config.txt"),
    include_str!("types/container.txt"),
    include_str!("types/custom_resource.txt"),
    include_str!("types/discovery.txt"),
    include_str!("types/event.txt"),
    include_str!("types/lease.txt"),
    include_str!("types/meta.txt"),
    include_str!("types/namespace.txt"),
    include_str!("types/networking.txt"),
    include_str!("types/node.txt"),
    include_str!("types/persistent_volume.txt"),
    include_str!("types/pod.txt"),
    include_str!("types/pod_status.txt"),
    include_str!("types/policy.txt"),
    include_str!("types/priority_class.txt"),
    include_str!("types/rbac.txt"),
    include_str!("types/review.txt"),
    include_str!("types/service.txt"),
    include_str!("types/storage.txt"),
    include_str!("types/volume.txt"),
    include_str!("types/webhook.txt"),
];

/// Returns the blocks of all types.
pub(super) fn blocks() -> impl Iterator<Item = &'static str> {
    let blocks = SOURCES.iter().flat_map(|source| source.split("\n\n"));
    blocks.filter(|block| !block.starts_with('#'))
}

/// Parses a block's first line: a type without its members.
pub(super) fn head(block: &'static str, version: Version) -> Option<Type> {
    let mut words = block.lines().next()?.split(' ');
    let mut head = Type {
        name: words.next()?,
        version,
        api_version: None,
        atomic: false,
        fields: Vec::new(),
    };
    for word in words {
        match word.split_once('=') {
            Some(("kind", api_version)) => head.api_version = Some(api_version),
            None if word == "atomic" => head.atomic = true,
            _ => return None,
        }
    }
    Some(head)
}

/// Parses a block.
///
/// # Errors
/// Fails with a line that is neither a type nor a member.
pub(super) fn block(block: &'static str, version: Version) -> Result<Type, &'static str> {
    let mut parsed = head(block, version).ok_or(block)?;
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

/// Splits a member's line into the rest and the version in which the member appeared; `None` if
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
    let (shape, kind) = parse_type(words.next()?, version);
    let mut field = Field {
        name: name.trim_end_matches('!'),
        always: name.ends_with('!'),
        embedded,
        tag: if tag == "-" {
            None
        } else {
            Some(parse_tag(tag)?)
        },
        shape,
        kind,
        topology: None,
        patch: None,
        retain_keys: false,
    };
    for word in words {
        match word.split_once('=') {
            Some(("by", keys)) => field.topology = Some(Topology::Keyed(parse_keys(keys))),
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

fn parse_tag(tag: &str) -> Option<Tag> {
    let (outer, number) = match tag.split_once('.') {
        Some((outer, number)) => (Some(outer.parse().ok()?), number),
        None => (None, tag),
    };
    Some(Tag {
        outer,
        number: number.parse().ok()?,
    })
}

fn parse_keys(keys: &'static str) -> Vec<ListKey> {
    let key = |key: &'static str| match key.split_once(':') {
        Some((name, default)) => ListKey {
            name,
            default: Some(default),
        },
        None => ListKey {
            name: key,
            default: None,
        },
    };
    keys.split(',').map(key).collect()
}

fn parse_type(declared: &'static str, version: Version) -> (Shape, Kind) {
    let of_map = || declared.strip_prefix("map<")?.strip_suffix('>');
    if let Some(of) = declared.strip_prefix('*') {
        (Shape::Pointer, parse_kind(of, version))
    } else if let Some(of) = declared.strip_prefix("[]") {
        (Shape::List, parse_kind(of, version))
    } else if let Some(of) = of_map() {
        (Shape::Map, parse_kind(of, version))
    } else {
        (Shape::Plain, parse_kind(declared, version))
    }
}

fn parse_kind(kind: &'static str, version: Version) -> Kind {
    match kind {
        "str" => Kind::String("string"),
        "i32" => Kind::Int32,
        "i64" => Kind::Int64,
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
