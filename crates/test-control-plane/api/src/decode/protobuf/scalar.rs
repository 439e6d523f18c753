//! Single values: numbers, strings, times, quantities, and the small messages that JSON has as one
//! value.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kube_apimachinery::protobuf::{BYTES, VARINT, Value as Field, WireError, fields};
use kube_apimachinery::schema::Kind;
use serde_json::{Value, json};

/// Go's zero time, the first second of year 1, in seconds since 1970.
const ZERO_TIME_SECONDS: i64 = -62_135_596_800;

/// Returns the wire type of a kind's values.
pub(super) fn wire_type(kind: Kind) -> u8 {
    match kind {
        Kind::Int32 | Kind::Int64 | Kind::Bool => VARINT,
        _ => BYTES,
    }
}

/// Decodes a varint.
pub(super) fn number(kind: Kind, varint: u64) -> Value {
    match kind {
        Kind::Bool => json!(varint != 0),
        // Go silently drops the upper bits.
        Kind::Int32 => json!(low_half(varint)),
        _ => json!(varint.cast_signed()),
    }
}

fn low_half(varint: u64) -> i32 {
    let half = u32::try_from(varint & u64::from(u32::MAX));
    half.unwrap_or_default().cast_signed()
}

/// Decodes a length-delimited value. Objects are decoded elsewhere.
pub(super) fn bytes(kind: Kind, bytes: &[u8]) -> Result<Value, WireError> {
    match kind {
        Kind::Bytes => Ok(json!(STANDARD.encode(bytes))),
        Kind::Quantity => text_of(bytes),
        Kind::IntOrString => int_or_string(bytes),
        Kind::Time | Kind::MicroTime => time(kind, bytes),
        Kind::Raw | Kind::Json => raw(raw_bytes(bytes)?),
        Kind::Strings => texts(bytes),
        _ => Ok(text(bytes)),
    }
}

/// Returns the zero value, the default of a map entry.
pub(super) fn zero(kind: Kind) -> Result<Value, WireError> {
    match kind {
        Kind::Int32 | Kind::Int64 | Kind::Bool => Ok(number(kind, 0)),
        _ => bytes(kind, &[]),
    }
}

/// Decodes a string. Go replaces bytes that aren't UTF-8 by U+FFFD when it writes JSON.
pub(super) fn text(bytes: &[u8]) -> Value {
    json!(String::from_utf8_lossy(bytes))
}

/// Returns the bytes of a message whose first field holds JSON text.
pub(super) fn raw_bytes(message: &[u8]) -> Result<&[u8], WireError> {
    let mut found: &[u8] = &[];
    for field in fields(message, "RawExtension") {
        if let (1, Field::Bytes(bytes)) = field? {
            found = bytes;
        }
    }
    Ok(found)
}

fn raw(bytes: &[u8]) -> Result<Value, WireError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(bytes)
        .map_err(|err| WireError::Value(format!("error decoding the raw object: {err}")))
}

/// Decodes a quantity: a message with a string.
fn text_of(message: &[u8]) -> Result<Value, WireError> {
    let mut found = json!("0");
    for field in fields(message, "Quantity") {
        if let (1, Field::Bytes(bytes)) = field? {
            found = text(bytes);
        }
    }
    Ok(found)
}

fn texts(message: &[u8]) -> Result<Value, WireError> {
    let mut found = Vec::new();
    for field in fields(message, "ExtraValue") {
        if let (1, Field::Bytes(bytes)) = field? {
            found.push(text(bytes));
        }
    }
    Ok(Value::Array(found))
}

fn int_or_string(message: &[u8]) -> Result<Value, WireError> {
    let (mut kind, mut int, mut string) = (0, json!(0), json!(""));
    for field in fields(message, "IntOrString") {
        match field? {
            (1, Field::Varint(varint)) => kind = varint,
            (2, Field::Varint(varint)) => int = number(Kind::Int32, varint),
            (3, Field::Bytes(bytes)) => string = text(bytes),
            _ => {}
        }
    }
    match kind {
        0 => Ok(int),
        1 => Ok(string),
        _ => Err(WireError::Value("impossible IntOrString.Type".to_owned())),
    }
}

/// Decodes a time in whole seconds or, as a `MicroTime`, in whole microseconds. The empty message,
/// and the first second of Go's calendar, are Go's zero time, which JSON writes as null.
fn time(kind: Kind, message: &[u8]) -> Result<Value, WireError> {
    let (mut seconds, mut nanos) = (0_i64, 0_i32);
    for field in fields(message, "Time") {
        match field? {
            (1, Field::Varint(varint)) => seconds = varint.cast_signed(),
            (2, Field::Varint(varint)) => nanos = low_half(varint),
            _ => {}
        }
    }
    let (nanos, format) = match kind {
        Kind::MicroTime => (nanos / 1000 * 1000, "%Y-%m-%dT%H:%M:%S.%6fZ"),
        _ => (0, "%Y-%m-%dT%H:%M:%SZ"),
    };
    if message.is_empty() || (seconds, nanos) == (ZERO_TIME_SECONDS, 0) {
        return Ok(Value::Null);
    }
    let out_of_range = || WireError::Value("time: year outside of range [0,9999]".to_owned());
    let time = Timestamp::from_second(seconds).map_err(|_| out_of_range())?;
    let time = time.checked_add(SignedDuration::from_nanos(nanos.into()));
    let time = time.map_err(|_| out_of_range())?.to_zoned(TimeZone::UTC);
    if time.year() < 0 {
        return Err(out_of_range());
    }
    Ok(json!(time.strftime(format).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_messages_decode_to_one_value() {
        for (kind, message, expected) in [
            (Kind::Quantity, &b"\x0a\x03100"[..], json!("100")),
            (Kind::Quantity, b"", json!("0")),
            (Kind::IntOrString, b"\x08\x00\x10\x50\x1a\x00", json!(80)),
            (
                Kind::IntOrString,
                b"\x08\x01\x10\x00\x1a\x0250",
                json!("50"),
            ),
            (Kind::Time, b"", json!(null)),
            (
                Kind::Time,
                b"\x08\x80\x92\xb8\xc3\x98\xfe\xff\xff\xff\x01",
                json!(null),
            ),
            (
                Kind::Time,
                b"\x08\x00\x10\x00",
                json!("1970-01-01T00:00:00Z"),
            ),
            (
                Kind::Time,
                b"\x08\x01\x10\x07",
                json!("1970-01-01T00:00:01Z"),
            ),
            // Nanoseconds out of range: no part of a `Time`, and added to a `MicroTime`.
            (
                Kind::Time,
                b"\x08\x01\x10\xff\xff\xff\xff\x07",
                json!("1970-01-01T00:00:01Z"),
            ),
            (
                Kind::MicroTime,
                b"\x08\x01\x10\x98\xf8\xff\xff\xff\xff\xff\xff\xff\x01",
                json!("1970-01-01T00:00:00.999999Z"),
            ),
            (
                Kind::MicroTime,
                b"\x08\x01\x10\xe8\x07",
                json!("1970-01-01T00:00:01.000001Z"),
            ),
            (Kind::Raw, b"\x0a\x07{\"a\":1}", json!({"a": 1})),
            (Kind::Raw, b"", json!(null)),
            (Kind::Strings, b"\x0a\x01a\x0a\x01b", json!(["a", "b"])),
            (Kind::Bytes, b"ab", json!("YWI=")),
            (Kind::String("string"), b"a\xff", json!("a\u{fffd}")),
        ] {
            assert_eq!(bytes(kind, message), Ok(expected), "{kind:?} {message:?}");
        }
        assert_eq!(number(Kind::Int32, u64::MAX), json!(-1));
        assert_eq!(number(Kind::Int64, u64::MAX), json!(-1));
        assert_eq!(number(Kind::Bool, 2), json!(true));
    }

    #[test]
    fn invalid_values_fail() {
        for (kind, message) in [
            (Kind::IntOrString, &b"\x08\x05"[..]),
            (Kind::Raw, b"\x0a\x01{"),
            // The largest number of seconds.
            (Kind::Time, b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
            (Kind::Time, b"\x08"),
        ] {
            assert!(bytes(kind, message).is_err(), "{kind:?} {message:?}");
        }
    }
}
