//! Conversion of protobuf messages of schema types to Go's JSON objects.

use kube_apimachinery::schema::{Field, Kind, Shape, Tag, Type};
use serde_json::{Map, Value, json};

use super::scalar;
use kube_apimachinery::protobuf::{BYTES, FieldTag, Reader, VARINT, WireError};

/// Maximum nesting of messages. The schema's types nest far less.
const MAX_DEPTH: usize = 64;

/// Decodes a message of the type `found` into `object`. Repeated messages are merged, as protobuf
/// requires.
///
/// # Errors
///
/// The bytes are no such message.
pub(super) fn read(
    found: &Type,
    bytes: &[u8],
    object: &mut Map<String, Value>,
) -> Result<(), WireError> {
    read_at(found, [None, None], bytes, object, 0)
}

/// Decodes the direct fields of `found`, or, with `outer`, the fields inside the embedded message
/// with these numbers.
fn read_at(
    found: &Type,
    outer: [Option<u32>; 2],
    bytes: &[u8],
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), WireError> {
    if depth > MAX_DEPTH {
        return Err(WireError::Value("proto: messages nested too deep".into()));
    }
    let mut reader = Reader::new(bytes);
    while let Some(tag) = reader.tag(found.go_name())? {
        let number = tag.number;
        let wanted = Tag { outer, number };
        if let Some(field) = found.fields.iter().find(|f| f.tag == Some(wanted)) {
            read_field(field, tag, &mut reader, object, depth)?;
        } else if let Some(outer) = embedded(found, outer, number) {
            let inner = expect_bytes(tag, "embedded message", &mut reader)?;
            read_at(found, outer, inner, object, depth + 1)?;
        } else {
            reader.skip(tag.wire)?;
        }
    }
    Ok(())
}

/// Returns the numbers of the message that is embedded with this number, if there is one.
fn embedded(found: &Type, outer: [Option<u32>; 2], number: u32) -> Option<[Option<u32>; 2]> {
    let inner = match outer {
        [None, _] => [Some(number), None],
        [outer, None] => [outer, Some(number)],
        _ => return None,
    };
    let mut tags = found.fields.iter().filter_map(|field| field.tag);
    tags.any(|tag| tag.outer == inner || [tag.outer[0], None] == inner)
        .then_some(inner)
}

fn read_field(
    field: &Field,
    tag: FieldTag,
    reader: &mut Reader<'_>,
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), WireError> {
    match field.shape {
        Shape::Plain | Shape::Pointer => {
            let before = object.remove(field.name);
            let value = read_value(field, tag, reader, before, depth)?;
            object.insert(field.name.to_owned(), value);
        }
        Shape::List => {
            let list = object.entry(field.name).or_insert_with(|| json!([]));
            let Value::Array(list) = list else {
                return Ok(());
            };
            if tag.wire == BYTES && scalar::wire_type(field.kind) == VARINT {
                let mut packed = Reader::new(reader.bytes()?);
                while !packed.is_empty() {
                    list.push(scalar::number(field.kind, packed.varint()?));
                }
            } else {
                list.push(read_value(field, tag, reader, None, depth)?);
            }
        }
        Shape::Map => {
            let entry = expect_bytes(tag, field.name, reader)?;
            let (key, value) = read_entry(field, entry, depth)?;
            let map = object.entry(field.name).or_insert_with(|| json!({}));
            if let Value::Object(map) = map {
                map.insert(key, value);
            }
        }
    }
    Ok(())
}

/// Decodes one value; `before` is an earlier object of the same field.
fn read_value(
    field: &Field,
    tag: FieldTag,
    reader: &mut Reader<'_>,
    before: Option<Value>,
    depth: usize,
) -> Result<Value, WireError> {
    if scalar::wire_type(field.kind) == VARINT {
        if tag.wire != VARINT {
            return Err(wrong_wire_type(tag, field.name));
        }
        return Ok(scalar::number(field.kind, reader.varint()?));
    }
    let bytes = expect_bytes(tag, field.name, reader)?;
    let Some(inner) = field.object_type() else {
        return scalar::bytes(field.kind, bytes);
    };
    let mut object = match before {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    };
    read_at(inner, [None, None], bytes, &mut object, depth + 1)?;
    Ok(Value::Object(object))
}

/// Decodes a map entry: a message with the key and the value.
fn read_entry(field: &Field, entry: &[u8], depth: usize) -> Result<(String, Value), WireError> {
    let mut reader = Reader::new(entry);
    let (mut key, mut value) = (String::new(), None);
    while let Some(tag) = reader.tag(field.name)? {
        match tag.number {
            1 => {
                let bytes = expect_bytes(tag, field.name, &mut reader)?;
                key = String::from_utf8_lossy(bytes).into_owned();
            }
            2 => value = Some(read_value(field, tag, &mut reader, None, depth)?),
            _ => reader.skip(tag.wire)?,
        }
    }
    let value = match (value, field.kind) {
        (Some(value), _) => value,
        (None, Kind::Struct(_)) => json!({}),
        (None, kind) => scalar::zero(kind)?,
    };
    Ok((key, value))
}

fn expect_bytes<'a>(
    tag: FieldTag,
    field: &str,
    reader: &mut Reader<'a>,
) -> Result<&'a [u8], WireError> {
    if tag.wire != BYTES {
        return Err(wrong_wire_type(tag, field));
    }
    reader.bytes()
}

/// Builds Go's error, which names the struct's field with a capital letter.
fn wrong_wire_type(tag: FieldTag, field: &str) -> WireError {
    let mut letters = field.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    WireError::WrongWireType {
        wire: tag.wire,
        field: first.into_iter().chain(letters).collect(),
    }
}
