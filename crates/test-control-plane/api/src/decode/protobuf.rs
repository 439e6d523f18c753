//! Decoding of protobuf bodies, which kubectl and typed Go clients send: an envelope that names the
//! kind, and the object as a message of the kind's schema type.
//!
//! These clients accept JSON responses. Responses are protobuf only for clients that rank it above
//! JSON and YAML.

mod message;
mod scalar;

use kube_apimachinery::protobuf::{Envelope, Value as Field, WireError, fields};
use kube_apimachinery::schema::{self, Type, UnknownMembers, Version};
use serde_json::{Map, Value, json};

use super::unrecognized::unrecognized;
use crate::kinds::{Kind, Trait};
use crate::object::Draft;
use crate::status::{ApiError, ApiResult};

/// Decodes the object of a POST or PUT. An envelope without a type defaults to the URL's kind.
///
/// # Errors
///
/// 400 for bytes that encode no such object.
pub(super) fn object(kind: &Kind, body: &[u8]) -> ApiResult<Draft> {
    let mut envelope =
        Envelope::read(body).map_err(|err| unrecognized(&kind.kind, &err.to_string(), body))?;
    if envelope.kind.is_empty() {
        envelope.kind = kind.kind.as_str().into();
    }
    if envelope.api_version.is_empty() {
        envelope.api_version = kind.api_version().into();
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
    let envelope = Envelope::read(body)?;
    if envelope.kind.is_empty() {
        return Err(WireError::Value("Object 'Kind' is missing".to_owned()));
    }
    decode(&envelope)
}

/// Returns the metadata of the object in a body, if it can be found.
pub fn metadata(body: &[u8]) -> Option<Value> {
    let envelope = Envelope::read(body).ok()?;
    let mut fields = fields(envelope.raw, "").map_while(Result::ok);
    let bytes = fields.find_map(|field| match field {
        (1, Field::Bytes(bytes)) => Some(bytes),
        _ => None,
    });
    let mut metadata = Map::new();
    message::read(schema::find_type("ObjectMeta")?, bytes?, &mut metadata).ok()?;
    Some(Value::Object(metadata))
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

/// Returns the text of the field that is kept verbatim. The decoder has already checked that it is
/// JSON.
fn raw_text(envelope: &Envelope<'_>) -> Option<String> {
    let found: &Type = Version::NEWEST.type_of_kind(&envelope.api_version, &envelope.kind)?;
    let raw = found.fields.iter().find(|f| f.kind == schema::Kind::Raw)?;
    let mut text = None;
    for field in fields(envelope.raw, "").map_while(Result::ok) {
        if let (number, Field::Bytes(bytes)) = field
            && Some(number) == raw.tag.map(|tag| tag.number)
        {
            let bytes = scalar::raw_bytes(bytes).ok()?;
            text = Some(String::from_utf8_lossy(bytes).into_owned());
        }
    }
    text.filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
