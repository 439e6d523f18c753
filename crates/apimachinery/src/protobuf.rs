//! The wire format of protobuf messages: tags, varints, skipped fields, and the envelope of whole
//! objects.

use std::borrow::Cow;

/// Media type of Kubernetes objects as protobuf messages.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// The prefix of all envelopes.
pub const PREFIX: [u8; 4] = *b"k8s\0";

/// The envelope of a whole object, which names its kind.
///
/// Upstream: `runtime.Unknown`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// API version of the object; may be empty.
    pub api_version: Cow<'a, str>,
    /// Kind of the object; may be empty.
    pub kind: Cow<'a, str>,
    /// The object's message.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Reads an envelope.
    ///
    /// # Errors
    ///
    /// The bytes are not an envelope.
    pub fn read(bytes: &'a [u8]) -> Result<Self, WireError> {
        if bytes.is_empty() {
            return Err(WireError::Value("empty data".to_owned()));
        }
        let Some(rest) = bytes.strip_prefix(&PREFIX) else {
            return Err(WireError::Value(
                "provided data does not appear to be a protobuf message, expected prefix \
                 [107 56 115 0]"
                    .to_owned(),
            ));
        };
        if rest.is_empty() {
            return Err(WireError::Value("empty body".to_owned()));
        }
        let mut envelope = Self::default();
        for field in fields(rest, "Unknown") {
            match field? {
                (1, Value::Bytes(type_meta)) => envelope.read_type_meta(type_meta)?,
                (2, Value::Bytes(raw)) => envelope.raw = raw,
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type_meta(&mut self, message: &'a [u8]) -> Result<(), WireError> {
        for field in fields(message, "TypeMeta") {
            match field? {
                (1, Value::Bytes(text)) => self.api_version = String::from_utf8_lossy(text),
                (2, Value::Bytes(text)) => self.kind = String::from_utf8_lossy(text),
                _ => {}
            }
        }
        Ok(())
    }
}

/// A reason why a message can't be decoded. The texts match Go's generated decoders.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The message ends in the middle of a field.
    #[error("unexpected EOF")]
    UnexpectedEnd,
    /// A varint has more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A length is negative in Go, as a 64-bit integer.
    #[error("proto: negative length found during unmarshaling")]
    NegativeLength,
    /// A group ends without a start.
    #[error("proto: {0}: wiretype end group for non-group")]
    EndGroup(String),
    /// A group ends without a start inside a skipped field.
    #[error("proto: unexpected end of group")]
    UnexpectedEndGroup,
    /// A field number is zero or too large.
    #[error("proto: {message}: illegal tag {number} (wire type {wire})")]
    IllegalTag {
        /// The message's type.
        message: String,
        /// The field number.
        number: u64,
        /// The wire type.
        wire: u8,
    },
    /// A field's wire type differs from its declaration.
    #[error("proto: wrong wireType = {wire} for field {field}")]
    WrongWireType {
        /// The wire type.
        wire: u8,
        /// The field's name.
        field: String,
    },
    /// The wire type does not exist.
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u8),
    /// The value is invalid for its type.
    #[error("{0}")]
    Value(String),
}

/// A field's tag: its number and wire type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldTag {
    /// The field number, at least 1.
    pub number: u32,
    /// The wire type, at most 7.
    pub wire: u8,
}

/// Wire type of a varint.
pub const VARINT: u8 = 0;
const FIXED64: u8 = 1;
/// Wire type of bytes with a length prefix: strings, messages.
pub const BYTES: u8 = 2;
const START_GROUP: u8 = 3;
const END_GROUP: u8 = 4;
const FIXED32: u8 = 5;

/// Reads the bytes of a message in order.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Starts at the beginning of a message.
    pub fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    /// Reads the next field's tag; `None` at the end. `message` names the message in errors.
    ///
    /// # Errors
    ///
    /// The number is zero or has more than 32 bits, a group ends, or the message ends in the tag.
    pub fn tag(&mut self, message: &str) -> Result<Option<FieldTag>, WireError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let (number, wire) = (tag >> 3, (tag & 7) as u8);
        if wire == END_GROUP {
            return Err(WireError::EndGroup(message.to_owned()));
        }
        match u32::try_from(number) {
            Ok(narrow) if narrow > 0 => Ok(Some(FieldTag {
                number: narrow,
                wire,
            })),
            _ => Err(WireError::IllegalTag {
                message: message.to_owned(),
                number,
                wire,
            }),
        }
    }

    /// Reads a varint of at most 64 bits.
    ///
    /// # Errors
    ///
    /// It is longer than 10 bytes, or the message ends in it.
    pub fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(WireError::UnexpectedEnd)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(WireError::Overflow)
    }

    /// Reads bytes with a length prefix.
    ///
    /// # Errors
    ///
    /// The length is invalid, or beyond the end of the message.
    pub fn bytes(&mut self) -> Result<&'a [u8], WireError> {
        let length = self.varint()?;
        if i64::try_from(length).is_err() {
            return Err(WireError::NegativeLength);
        }
        let length = usize::try_from(length).map_err(|_| WireError::UnexpectedEnd)?;
        self.take(length)
    }

    /// Reads the next field; `None` at the end.
    fn field(&mut self, message: &str) -> Result<Option<(u32, Value<'a>)>, WireError> {
        let Some(FieldTag { number, wire }) = self.tag(message)? else {
            return Ok(None);
        };
        let value = match wire {
            VARINT => Value::Varint(self.varint()?),
            BYTES => Value::Bytes(self.bytes()?),
            other => {
                self.skip(other)?;
                Value::Other
            }
        };
        Ok(Some((number, value)))
    }

    /// Returns true at the end of the message.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Skips the value of an unknown field.
    ///
    /// # Errors
    ///
    /// The wire type doesn't exist, or the message ends in the value.
    pub fn skip(&mut self, wire: u8) -> Result<(), WireError> {
        let mut open_groups = 0_usize;
        let mut wire = wire;
        loop {
            match wire {
                VARINT => drop(self.varint()?),
                FIXED64 => drop(self.take(8)?),
                BYTES => drop(self.bytes()?),
                START_GROUP => open_groups += 1,
                END_GROUP => {
                    open_groups = open_groups
                        .checked_sub(1)
                        .ok_or(WireError::UnexpectedEndGroup)?;
                }
                FIXED32 => drop(self.take(4)?),
                other => return Err(WireError::IllegalWireType(other)),
            }
            if open_groups == 0 {
                return Ok(());
            }
            wire = (self.varint()? & 7) as u8;
        }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(WireError::UnexpectedEnd)?;
        self.0 = rest;
        Ok(taken)
    }
}

/// Returns the numbers and values of a message's fields in order, up to the first error. `name`
/// names the message in errors.
///
/// ```
/// use kube_apimachinery::protobuf::{Value, fields};
///
/// let message = [0x0a, 1, b'a', 0x10, 7];
/// let fields: Vec<_> = fields(&message, "Pair").collect::<Result<_, _>>().unwrap();
/// assert_eq!(fields, [(1, Value::Bytes(b"a")), (2, Value::Varint(7))]);
/// ```
pub fn fields<'a>(
    message: &'a [u8],
    name: &str,
) -> impl Iterator<Item = Result<(u32, Value<'a>), WireError>> {
    let mut reader = Reader(message);
    std::iter::from_fn(move || {
        let field = reader.field(name).transpose()?;
        if field.is_err() {
            reader = Reader(&[]);
        }
        Some(field)
    })
}

/// Adds an occurrence of an embedded message to the earlier ones: together they are one message, in
/// which later fields win and lists grow.
pub fn merge<'a>(earlier: &mut Cow<'a, [u8]>, occurrence: &'a [u8]) {
    if earlier.is_empty() {
        *earlier = Cow::Borrowed(occurrence);
    } else {
        earlier.to_mut().extend_from_slice(occurrence);
    }
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number, or a boolean.
    Varint(u64),
    /// A string, or a message.
    Bytes(&'a [u8]),
    /// A value of a wire type that Kubernetes doesn't use.
    Other,
}

impl<'a> Value<'a> {
    /// Returns the bytes of a string or a message; empty for other values.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Varint(_) | Self::Other => &[],
        }
    }

    /// Returns the text of a string; empty for other values.
    ///
    /// # Errors
    ///
    /// The string is invalid UTF-8, which Go doesn't check.
    pub fn text(self) -> Result<&'a str, WireError> {
        let text = std::str::from_utf8(self.bytes());
        text.map_err(|_| WireError::Value("invalid UTF-8".to_owned()))
    }

    /// Returns a number; 0 for other values.
    pub fn number(self) -> i64 {
        match self {
            Self::Varint(number) => number.cast_signed(),
            Self::Bytes(_) | Self::Other => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_at_most_ten_bytes() {
        let read = |bytes: &[u8]| Reader(bytes).varint();
        assert_eq!(read(&[0x96, 0x01]), Ok(150));
        let minus_one = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(read(&minus_one), Ok(u64::MAX));
        assert_eq!(read(&[0x80; 11]), Err(WireError::Overflow));
        assert_eq!(read(&[0x80]), Err(WireError::UnexpectedEnd));
    }

    #[test]
    fn unknown_fields_and_groups_are_skipped() {
        for (wire, bytes) in [
            (VARINT, vec![0x80, 0x01]),
            (FIXED64, vec![0; 8]),
            (BYTES, vec![2, 1, 1]),
            (FIXED32, vec![0; 4]),
            // A group with a varint and a nested group.
            (START_GROUP, vec![0x08, 0x01, 0x0b, 0x0c, 0x0c]),
        ] {
            let mut reader = Reader(&bytes);
            assert_eq!(reader.skip(wire), Ok(()), "wire type {wire}");
            assert!(reader.0.is_empty(), "wire type {wire}");
        }
        assert_eq!(Reader(&[]).skip(7), Err(WireError::IllegalWireType(7)));
        assert_eq!(Reader(&[0x0b]).skip(3), Err(WireError::UnexpectedEnd));
        let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(Reader(&huge).bytes(), Err(WireError::NegativeLength));
        assert_eq!(Reader(&[5, 1]).bytes(), Err(WireError::UnexpectedEnd));
    }

    #[test]
    fn invalid_tags_fail() {
        let read = |bytes: &[u8]| Reader(bytes).tag("Pod").map_err(|err| err.to_string());
        assert_eq!(read(&[]), Ok(None));
        let tag = FieldTag {
            number: 1,
            wire: BYTES,
        };
        assert_eq!(read(&[0x0a]), Ok(Some(tag)));
        assert_eq!(
            read(&[0x02]).unwrap_err(),
            "proto: Pod: illegal tag 0 (wire type 2)"
        );
        let text = "proto: Pod: wiretype end group for non-group";
        assert_eq!(read(&[0x0c]).unwrap_err(), text);
    }
}
