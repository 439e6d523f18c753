//! Encoding of JSON responses as protobuf messages, driven by the schema table. The mirror of the
//! body decoder.
//!
//! The bytes equal upstream's: fields sorted by number, zero values where Go's generated code
//! writes them, map entries sorted by key.

mod message;
mod scalar;

use std::borrow::Cow;

use kube_apimachinery::protobuf::PREFIX;
use kube_apimachinery::schema::{Kind, Shape, Type, Version};
use serde::Deserialize;
use serde::de::DeserializeSeed;
use serde_json::value::RawValue;

use self::message::Member;
use self::message::Message;

use crate::go::wire;

/// A reason why a response has no protobuf form.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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

/// Encodes a whole response: an object, a list of objects, the metadata of either, or a status.
///
/// # Errors
///
/// The kind has no message.
pub fn answer(text: &[u8]) -> Encoded {
    let mut out = Vec::with_capacity(text.len());
    write_answer(text, &mut out)?;
    Ok(out)
}

/// Encodes an object of the type `of` as a whole message.
///
/// # Errors
///
/// The text is not an object of that type.
pub fn object(of: &'static Type, text: &[u8]) -> Encoded {
    let mut out = Vec::with_capacity(text.len());
    let answer: Answer<'_> = serde_json::from_slice(text)?;
    answer.write_envelope(&mut out, |out| write_object(of, text, out))?;
    Ok(out)
}

/// Encodes a line of a watch as a frame: its length, then the event.
///
/// # Errors
///
/// The object's kind has no message.
pub fn watch_frame(line: &[u8]) -> Encoded {
    let event: Event<'_> = serde_json::from_slice(line)?;
    let mut out = Vec::with_capacity(line.len());
    out.extend([0; 4]);
    wire::bytes(&mut out, 1, event.kind.as_bytes());
    wire::try_message(&mut out, 2, |out| {
        wire::try_message(out, 1, |out| {
            write_answer(event.object.get().as_bytes(), out)
        })
    })?;
    let length = u32::try_from(out.len() - 4).unwrap_or(u32::MAX);
    out[..4].copy_from_slice(&length.to_be_bytes());
    Ok(out)
}

/// A line of a watch.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The parts of a response that decide its form.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(rename = "apiVersion", default, borrow)]
    version: Cow<'a, str>,
    #[serde(default, borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    items: Option<&'a RawValue>,
}

fn write_answer(text: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let answer: Answer<'_> = serde_json::from_slice(text)?;
    let (version, kind) = (&*answer.version, &*answer.kind);
    if let Some(of) = find_type(version, kind) {
        return answer.write_envelope(out, |out| write_object(of, text, out));
    }
    let item = kind.strip_suffix("List");
    let Some(item) = item.and_then(|item| find_type(version, item)) else {
        return Err(EncodeError::NoMessage(kind.to_owned()));
    };
    let list_metadata = Version::NEWEST.type_name("ListMeta");
    answer.write_envelope(out, |out| {
        write_member(
            1,
            Kind::Struct(list_metadata),
            Shape::Plain,
            answer.metadata,
            out,
        )?;
        write_member(2, Kind::Struct(item.into()), Shape::List, answer.items, out)
    })
}

/// Returns the type of an object, also of one of which only the metadata is requested.
fn find_type(version: &str, kind: &str) -> Option<&'static Type> {
    match kind {
        "PartialObjectMetadata" => Version::NEWEST.find_type(kind),
        _ => Version::NEWEST.type_of_kind(version, kind),
    }
}

impl Answer<'_> {
    /// Appends a whole message, whose fields `write` appends.
    ///
    /// Upstream: `runtime.Unknown`.
    fn write_envelope(
        &self,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        out.extend(PREFIX);
        wire::message(out, 1, |out| {
            wire::bytes(out, 1, self.version.as_bytes());
            wire::bytes(out, 2, self.kind.as_bytes());
        });
        wire::try_message(out, 2, write)?;
        // Empty encoding and content type: the defaults.
        wire::bytes(out, 3, []);
        wire::bytes(out, 4, []);
        Ok(())
    }
}

fn write_object(of: &'static Type, text: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let mut text = serde_json::Deserializer::from_slice(text);
    Ok(Message { of, out }.deserialize(&mut text)?)
}

fn write_member(
    number: u32,
    kind: Kind,
    shape: Shape,
    value: Option<&RawValue>,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let value = value.map_or("null", RawValue::get);
    let mut text = serde_json::Deserializer::from_str(value);
    let member = Member {
        number,
        kind,
        shape,
        out,
    };
    Ok(member.deserialize(&mut text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{self, BodyFormat};
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
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
    fn order_of_members_and_nulls_change_no_byte() {
        let plain = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","labels":{"a":"1","b":"2"}},
            "spec":{"volumes":[{"name":"v","emptyDir":{"medium":"Memory"}}],"nodeName":"n"}}"#;
        let shuffled = r#"{"status":null,"spec":{"nodeName":"n","hostname":null,"containers":null,
            "volumes":[{"emptyDir":{"medium":"Memory"},"secret":null,"name":"v"}],"unknown":[1]},
            "metadata":{"labels":{"b":"2","a":"1"},"namespace":null,"name":"p"},
            "apiVersion":"v1","kind":"Pod"}"#;
        let [plain, shuffled] = [plain, shuffled].map(|text| answer(text.as_bytes()).unwrap());
        assert_eq!(
            shuffled.escape_ascii().to_string(),
            plain.escape_ascii().to_string()
        );
    }

    #[test]
    fn times_before_1970_have_positive_nanoseconds() {
        for (time, message) in [
            ("1970-01-01T00:00:00.000000Z", &b"\x08\x00\x10\x00"[..]),
            (
                "1970-01-01T00:00:00.500000Z",
                b"\x08\x00\x10\x80\xca\xb5\xee\x01",
            ),
            // Minus two seconds and half a second.
            (
                "1969-12-31T23:59:58.500000Z",
                b"\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x80\xca\xb5\xee\x01",
            ),
        ] {
            let lease = json!({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
                "spec": {"renewTime": time}});
            let found = answer(lease.to_string().as_bytes()).unwrap();
            let read = decode::value(BodyFormat::Protobuf, &found).unwrap();
            assert_eq!(read["spec"]["renewTime"], time);
            let mut parts = found.windows(message.len());
            assert!(parts.any(|part| part == message), "{found:x?}");
        }
    }

    #[test]
    fn values_of_another_type_fail() {
        for spec in [
            r#"{"nodeName":1}"#,
            r#"{"hostNetwork":"yes"}"#,
            r#"{"priority":1.5}"#,
            r#"{"priority":9223372036854775808}"#,
            r#"{"containers":[1]}"#,
            r#"{"nodeSelector":{"a":[]}}"#,
        ] {
            let pod = format!(r#"{{"kind":"Pod","apiVersion":"v1","spec":{spec}}}"#);
            let error = answer(pod.as_bytes()).unwrap_err();
            assert!(matches!(error, EncodeError::Json(_)), "{spec}: {error}");
        }
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
