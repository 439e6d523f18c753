//! Encoding of JSON answers as protobuf messages, driven by the schema table. The mirror of the
//! body decoder.
//!
//! The bytes equal the reference's: fields sorted by number, zero values where Go's generated code
//! writes them, map entries sorted by key.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube_apimachinery::protobuf::PREFIX;
use kube_apimachinery::schema::{Field, Kind, Shape, Type, TypeName, Version};
use kube_apimachinery::time;
use serde_json::value::RawValue;

const VARINT: u64 = 0;
const BYTES: u64 = 2;

/// A reason why an answer has no protobuf form.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The JSON does not match its type.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The type has no protobuf form.
    #[error(
        "object *v1.{0} does not implement the protobuf marshalling interface and cannot be \
         encoded to a protobuf message"
    )]
    NoMessage(String),
}

type Encoded = Result<Vec<u8>, EncodeError>;
type Members<'a> = BTreeMap<String, &'a RawValue>;

/// Encodes a whole answer: an object, a list of objects, the metadata of either, or a status.
///
/// # Errors
///
/// The kind has no message.
pub fn answer(text: &[u8]) -> Encoded {
    let members: Members<'_> = serde_json::from_slice(text)?;
    let (version, kind) = type_meta(&members)?;
    let mut raw = Vec::new();
    if let Some(found) = Version::NEWEST.type_of_kind(&version, &kind) {
        write_at(found, None, &members, &mut raw)?;
    } else if let Some(found) = type_of_item(&version, &kind) {
        let metadata = members.get("metadata").copied();
        nested(&mut raw, 1, message("ListMeta".into(), metadata)?);
        for item in list(members.get("items").copied())? {
            let mut message = Vec::new();
            write_item(found, item, &mut message)?;
            nested(&mut raw, 2, message);
        }
    } else if kind == "PartialObjectMetadata" {
        metadata_only(&members, &mut raw)?;
    } else {
        return Err(EncodeError::NoMessage(kind));
    }
    Ok(enveloped(&version, &kind, &raw))
}

/// Encodes an object of the type `found` as a whole message.
///
/// # Errors
///
/// The text is not an object of that type.
pub fn object(found: &Type, text: &[u8]) -> Encoded {
    let members: Members<'_> = serde_json::from_slice(text)?;
    let (version, kind) = type_meta(&members)?;
    let mut raw = Vec::new();
    write_at(found, None, &members, &mut raw)?;
    Ok(enveloped(&version, &kind, &raw))
}

/// Encodes a line of a watch as a frame: its length, then the event.
///
/// # Errors
///
/// The object's kind has no message.
pub fn watch_frame(line: &[u8]) -> Encoded {
    let members: Members<'_> = serde_json::from_slice(line)?;
    let object = members.get("object").map_or("null", |object| object.get());
    let mut raw = Vec::new();
    nested(&mut raw, 1, answer(object.as_bytes())?);
    let mut event = Vec::new();
    write_text(&mut event, 1, &text(members.get("type").copied())?);
    nested(&mut event, 2, raw);
    let length = u32::try_from(event.len()).unwrap_or(u32::MAX);
    Ok([&length.to_be_bytes()[..], &event].concat())
}

/// Returns the type of a list's items, or `None` if the kind is no list.
fn type_of_item(version: &str, kind: &str) -> Option<Item> {
    let item = kind.strip_suffix("List")?;
    match item {
        "PartialObjectMetadata" => Some(Item::Metadata),
        _ => Version::NEWEST.type_of_kind(version, item).map(Item::Whole),
    }
}

/// The type of a list's items.
#[derive(Clone, Copy)]
enum Item {
    Whole(&'static Type),
    Metadata,
}

fn write_item(item: Item, value: &RawValue, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let members = members(Some(value))?;
    match item {
        Item::Whole(found) => write_at(found, None, &members, out),
        Item::Metadata => metadata_only(&members, out),
    }
}

fn metadata_only(object: &Members<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let metadata = message("ObjectMeta".into(), object.get("metadata").copied())?;
    nested(out, 1, metadata);
    Ok(())
}

fn type_meta(members: &Members<'_>) -> Result<(String, String), EncodeError> {
    let member = |name| text(members.get(name).copied());
    Ok((member("apiVersion")?, member("kind")?))
}

/// Upstream: `runtime.Unknown`.
fn enveloped(version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut type_meta = Vec::new();
    write_text(&mut type_meta, 1, version);
    write_text(&mut type_meta, 2, kind);
    let mut out = PREFIX.to_vec();
    nested(&mut out, 1, type_meta);
    nested(&mut out, 2, raw);
    // Empty encoding and content type: the defaults.
    nested(&mut out, 3, []);
    nested(&mut out, 4, []);
    out
}

/// Writes the direct members of `found`, or, with `outer`, the members inside the embedded message
/// with that number.
fn write_at(
    found: &Type,
    outer: Option<u32>,
    members: &Members<'_>,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let mut numbers: BTreeMap<u32, Option<&Field>> = BTreeMap::new();
    for field in &found.fields {
        match (field.tag, outer) {
            (Some(tag), _) if tag.outer == outer => numbers.insert(tag.number, Some(field)),
            (Some(tag), None) => tag.outer.and_then(|outer| numbers.insert(outer, None)),
            _ => continue,
        };
    }
    for (number, field) in numbers {
        let Some(field) = field else {
            let mut embedded = Vec::new();
            write_at(found, Some(number), members, &mut embedded)?;
            nested(out, number, embedded);
            continue;
        };
        let value = members
            .get(field.name)
            .copied()
            .filter(|v| v.get() != "null");
        write_field(number, field, value, out)?;
    }
    Ok(())
}

fn write_field(
    number: u32,
    field: &Field,
    value: Option<&RawValue>,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    match field.shape {
        Shape::Pointer if value.is_none() => Ok(()),
        Shape::Plain if value.is_none() && field.kind == Kind::Bytes => Ok(()),
        Shape::Plain | Shape::Pointer => write_value(number, field.kind, value, out),
        Shape::List => {
            for item in list(value)? {
                write_value(number, field.kind, Some(item), out)?;
            }
            Ok(())
        }
        Shape::Map => {
            for (key, value) in members(value)? {
                let mut entry = Vec::new();
                write_text(&mut entry, 1, &key);
                write_value(2, field.kind, Some(value), &mut entry)?;
                nested(out, number, entry);
            }
            Ok(())
        }
    }
}

/// Writes one value, or Go's encoding of zero if there is none.
fn write_value(
    number: u32,
    kind: Kind,
    value: Option<&RawValue>,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let bytes = match kind {
        Kind::Int32 | Kind::Int64 => {
            let found: i64 = parsed(value)?;
            write_number(out, number, found);
            return Ok(());
        }
        Kind::Bool => {
            let found: bool = parsed(value)?;
            write_number(out, number, i64::from(found));
            return Ok(());
        }
        Kind::String(_) => text(value)?.into_bytes(),
        Kind::Bytes => STANDARD.decode(text(value)?).unwrap_or_default(),
        Kind::Struct(of) => message(of, value)?,
        Kind::Quantity => {
            let quantity = text(value)?;
            let quantity = if quantity.is_empty() { "0" } else { &quantity };
            let mut message = Vec::new();
            write_text(&mut message, 1, quantity);
            message
        }
        Kind::IntOrString => int_or_string(value)?,
        Kind::Time | Kind::MicroTime => timestamp(&text(value)?),
        Kind::Raw | Kind::Json => {
            let mut message = Vec::new();
            if let Some(value) = value {
                nested(&mut message, 1, value.get());
            }
            message
        }
        Kind::Strings => {
            let mut message = Vec::new();
            for item in list(value)? {
                write_text(&mut message, 1, &text(Some(item))?);
            }
            message
        }
    };
    nested(out, number, bytes);
    Ok(())
}

/// Encodes an object of the named type.
fn message(of: TypeName<'_>, value: Option<&RawValue>) -> Encoded {
    let unknown = || EncodeError::NoMessage(of.name.to_owned());
    let found = of.find().ok_or_else(unknown)?;
    let mut message = Vec::new();
    write_at(found, None, &members(value)?, &mut message)?;
    Ok(message)
}

fn int_or_string(value: Option<&RawValue>) -> Encoded {
    let is_text = value.is_some_and(|value| value.get().starts_with('"'));
    let (int, string): (i64, String) = if is_text {
        (0, text(value)?)
    } else {
        (parsed(value)?, String::new())
    };
    let mut message = Vec::new();
    write_number(&mut message, 1, i64::from(is_text));
    write_number(&mut message, 2, int);
    write_text(&mut message, 3, &string);
    Ok(message)
}

/// Encodes a time; the zero time is an empty message.
fn timestamp(text: &str) -> Vec<u8> {
    let mut message = Vec::new();
    if let Ok(time) = time::parse(text) {
        write_number(&mut message, 1, time.as_second());
        write_number(&mut message, 2, time.subsec_nanosecond().into());
    }
    message
}

fn members(value: Option<&RawValue>) -> serde_json::Result<Members<'_>> {
    parsed(value)
}

fn list(value: Option<&RawValue>) -> serde_json::Result<Vec<&RawValue>> {
    parsed(value)
}

fn text(value: Option<&RawValue>) -> serde_json::Result<String> {
    parsed(value)
}

/// Parses JSON text; a missing value and null become the type's zero.
fn parsed<'a, T: serde::Deserialize<'a> + Default>(
    value: Option<&'a RawValue>,
) -> serde_json::Result<T> {
    let Some(value) = value else {
        return Ok(T::default());
    };
    let found: Option<T> = serde_json::from_str(value.get())?;
    Ok(found.unwrap_or_default())
}

fn write_text(out: &mut Vec<u8>, number: u32, text: &str) {
    nested(out, number, text);
}

fn write_number(out: &mut Vec<u8>, number: u32, value: i64) {
    varint(out, u64::from(number) << 3 | VARINT);
    varint(out, value.cast_unsigned());
}

/// Writes bytes with their field number and length.
fn nested(out: &mut Vec<u8>, number: u32, bytes: impl AsRef<[u8]>) {
    let bytes = bytes.as_ref();
    varint(out, u64::from(number) << 3 | BYTES);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{self, BodyFormat};
    use serde_json::{Value, json};

    /// The other encoder omits some zero values that Go writes. Elsewhere the bytes are equal.
    #[test]
    fn messages_match_another_encoder() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../test/vectors/protobuf.jsonl"
        );
        let lines = std::fs::read_to_string(path).unwrap();
        let (mut all, mut same) = (0, 0);
        for line in lines.lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let body = STANDARD.decode(case["body"].as_str().unwrap()).unwrap();
            let found = answer(case["expect"].to_string().as_bytes()).unwrap();
            let read = decode::value(BodyFormat::Protobuf, &found).unwrap();
            assert_eq!(read, case["expect"]);
            assert!(found.len() >= body.len(), "{}", case["expect"]);
            all += 1;
            same += usize::from(found == body);
        }
        assert!(same > 10 && all > 20, "{same} of {all}");
    }

    #[test]
    fn status_is_encoded_with_details() {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "m", "reason": "r", "code": 404,
            "details": {"name": "n", "kind": "pods", "causes": [{"reason": "c", "field": "f"}]},
        });
        let found = answer(status.to_string().as_bytes()).unwrap();
        let details =
            b"\x0a\x01n\x12\x00\x1a\x04pods\x22\x08\x0a\x01c\x12\x00\x1a\x01f\x28\x00\x32\x00";
        let start =
            b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status\x12\x35\x0a\x06\x0a\x00\x12\x00\x1a\x00\
                      \x12\x07Failure\x1a\x01m\x22\x01r\x2a\x19";
        let end = b"\x30\x94\x03\x1a\x00\x22\x00";
        let expected = [&start[..], details, end].concat();
        assert_eq!(
            found.escape_ascii().to_string(),
            expected.escape_ascii().to_string()
        );
    }

    #[test]
    fn error_names_kind_without_message() {
        let table = json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1"}).to_string();
        let error = answer(table.as_bytes()).unwrap_err().to_string();
        assert!(
            error.starts_with("object *v1.Table does not implement"),
            "{error}"
        );
    }
}
