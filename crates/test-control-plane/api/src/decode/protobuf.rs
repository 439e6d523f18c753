//! Decoding of protobuf bodies, which kubectl and typed Go clients send: an envelope that names the
//! kind, and the object as a message of the kind's schema type.
//!
//! These clients accept JSON answers. Protobuf answers go only to clients that accept nothing else.

mod message;
mod scalar;
mod wire;

use kube_apimachinery::schema::{self, Type, UnknownMembers, Version};
use serde_json::{Map, Value, json};

use super::unrecognized;
use crate::kinds::{Kind, Trait};
use crate::object::Draft;
use crate::status::{ApiError, ApiResult};

use self::wire::{BYTES, Reader, WireError};

/// The prefix of all envelopes.
const PREFIX: [u8; 4] = *b"k8s\0";

/// The envelope of an encoded object.
///
/// Upstream: `runtime.Unknown`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

/// Decodes the object of a POST or PUT. An envelope without a type defaults to the URL's kind.
///
/// # Errors
///
/// 400 for bytes that encode no such object.
pub(super) fn object(kind: &Kind, body: &[u8]) -> ApiResult<Draft> {
    let mut envelope =
        envelope(body).map_err(|err| unrecognized(&kind.kind, &err.to_string(), body))?;
    if envelope.kind.is_empty() {
        kind.kind.clone_into(&mut envelope.kind);
    }
    if envelope.api_version.is_empty() {
        envelope.api_version = kind.api_version();
    }
    let value = decode(&envelope).map_err(|err| {
        let (found, version) = (&envelope.kind, &envelope.api_version);
        let version = version.rsplit('/').next().unwrap_or_default();
        let wanted = &kind.kind;
        ApiError::bad_request(format!(
            "{found} in version {version:?} cannot be handled as a {wanted}: {err}"
        ))
    })?;
    let mut draft = Draft { value, data: None };
    if kind.has(Trait::RawData) && envelope.kind == kind.kind {
        let data = raw_text(&envelope).filter(|text| text != "null");
        draft.data = data;
        if let Some(members) = draft.value.as_object_mut() {
            members.remove("data");
        }
    }
    Ok(draft)
}

/// Decodes any object, such as options.
///
/// # Errors
///
/// The bytes encode no object.
pub(super) fn value(body: &[u8]) -> Result<Value, WireError> {
    let envelope = envelope(body)?;
    if envelope.kind.is_empty() {
        return Err(WireError::Value("Object 'Kind' is missing".to_owned()));
    }
    decode(&envelope)
}

/// Returns the metadata of the object in a body, if it can be found.
pub fn metadata(body: &[u8]) -> Option<Value> {
    let envelope = envelope(body).ok()?;
    let mut reader = Reader(envelope.raw);
    while let Ok(Some(tag)) = reader.tag("") {
        if (tag.number, tag.wire) == (1, BYTES) {
            let mut metadata = Map::new();
            let found = schema::find_type("ObjectMeta")?;
            message::read(found, reader.bytes().ok()?, &mut metadata).ok()?;
            return Some(Value::Object(metadata));
        }
        reader.skip(tag.wire).ok()?;
    }
    None
}

/// Converts the object to Go's canonical JSON, without omitted zero values. An unknown kind keeps
/// only its type, which the type check then rejects.
fn decode(envelope: &Envelope<'_>) -> Result<Value, WireError> {
    let (api_version, kind) = (&envelope.api_version, &envelope.kind);
    let Some(found) = Version::NEWEST.type_of_kind(api_version, kind) else {
        return Ok(json!({"apiVersion": api_version, "kind": kind}));
    };
    let mut object = Map::new();
    message::read(found, envelope.raw, &mut object)?;
    let value = Value::Object(object);
    let value = schema::normalize_owned(found, value, UnknownMembers::Drop, "");
    let mut value = value.map_err(|err| WireError::Value(err.to_string()))?;
    value["apiVersion"] = json!(api_version);
    value["kind"] = json!(kind);
    Ok(value)
}

fn envelope(body: &[u8]) -> Result<Envelope<'_>, WireError> {
    if body.is_empty() {
        return Err(WireError::Value("empty data".to_owned()));
    }
    let Some(rest) = body.strip_prefix(&PREFIX) else {
        return Err(WireError::Value(
            "provided data does not appear to be a protobuf message, expected prefix \
             [107 56 115 0]"
                .to_owned(),
        ));
    };
    if rest.is_empty() {
        return Err(WireError::Value("empty body".to_owned()));
    }
    let mut envelope = Envelope::default();
    let mut reader = Reader(rest);
    while let Some(tag) = reader.tag("Unknown")? {
        match (tag.number, tag.wire) {
            (1, BYTES) => read_type_meta(reader.bytes()?, &mut envelope)?,
            (2, BYTES) => envelope.raw = reader.bytes()?,
            (_, wire) => reader.skip(wire)?,
        }
    }
    Ok(envelope)
}

fn read_type_meta(bytes: &[u8], envelope: &mut Envelope<'_>) -> Result<(), WireError> {
    let mut reader = Reader(bytes);
    while let Some(tag) = reader.tag("TypeMeta")? {
        let member = match (tag.number, tag.wire) {
            (1, BYTES) => &mut envelope.api_version,
            (2, BYTES) => &mut envelope.kind,
            (_, wire) => {
                reader.skip(wire)?;
                continue;
            }
        };
        *member = String::from_utf8_lossy(reader.bytes()?).into_owned();
    }
    Ok(())
}

/// Returns the text of the member that is kept verbatim. The decoder has already checked that it is
/// JSON.
fn raw_text(envelope: &Envelope<'_>) -> Option<String> {
    let found: &Type = Version::NEWEST.type_of_kind(&envelope.api_version, &envelope.kind)?;
    let raw = found.fields.iter().find(|f| f.kind == schema::Kind::Raw)?;
    let mut text = None;
    let mut reader = Reader(envelope.raw);
    while let Ok(Some(tag)) = reader.tag("") {
        if (Some(tag.number), tag.wire) == (raw.tag.map(|tag| tag.number), BYTES) {
            let bytes = scalar::raw_bytes(reader.bytes().ok()?).ok()?;
            text = Some(String::from_utf8_lossy(bytes).into_owned());
        } else {
            reader.skip(tag.wire).ok()?;
        }
    }
    text.filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
