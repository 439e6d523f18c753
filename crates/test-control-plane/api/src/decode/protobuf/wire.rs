//! The wire format: tags, varints, and skipped fields.

/// A reason why a message can't be decoded. The texts match Go's generated decoders.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
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
        message: String,
        number: u64,
        wire: u8,
    },
    /// A field's wire type differs from its declaration.
    #[error("proto: wrong wireType = {wire} for field {field}")]
    WrongWireType { wire: u8, field: String },
    /// The wire type does not exist.
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u8),
    /// The value is invalid for its type.
    #[error("{0}")]
    Value(String),
}

/// A field's tag: its number and wire type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FieldTag {
    pub(super) number: u32,
    pub(super) wire: u8,
}

pub(super) const VARINT: u8 = 0;
pub(super) const FIXED64: u8 = 1;
pub(super) const BYTES: u8 = 2;
pub(super) const START_GROUP: u8 = 3;
pub(super) const END_GROUP: u8 = 4;
pub(super) const FIXED32: u8 = 5;

/// Reads the bytes of a message in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// Reads the next field's tag; `None` at the end. `message` names the message in errors.
    pub(super) fn tag(&mut self, message: &str) -> Result<Option<FieldTag>, WireError> {
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
    pub(super) fn varint(&mut self) -> Result<u64, WireError> {
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
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], WireError> {
        let length = self.varint()?;
        if i64::try_from(length).is_err() {
            return Err(WireError::NegativeLength);
        }
        let length = usize::try_from(length).map_err(|_| WireError::UnexpectedEnd)?;
        self.take(length)
    }

    /// Skips the value of an unknown field.
    pub(super) fn skip(&mut self, wire: u8) -> Result<(), WireError> {
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
