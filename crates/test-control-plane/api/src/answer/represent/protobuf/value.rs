//! Encoding of a single value as a field.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube_apimachinery::schema::Kind;
use kube_apimachinery::time;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_json::value::RawValue;

use super::message::Message;
use crate::go::wire;

/// Appends a value as a field.
pub(super) struct OneValue<'o> {
    pub(super) number: u32,
    pub(super) kind: Kind,
    pub(super) null: Null,
    pub(super) out: &'o mut Vec<u8>,
}

/// The encoding of null.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Null {
    /// No field.
    Absent,
    /// The field of Go's zero value.
    Zero,
}

impl<'de> DeserializeSeed<'de> for OneValue<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if !matches!(self.kind, Kind::Raw | Kind::Json) {
            return deserializer.deserialize_any(self);
        }
        match <&RawValue>::deserialize(deserializer)?.get() {
            "null" => self.visit_unit(),
            text => {
                wire::message(self.out, self.number, |out| wire::bytes(out, 1, text));
                Ok(())
            }
        }
    }
}

impl<'de> Visitor<'de> for OneValue<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a value of the type {:?}", self.kind)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        if self.null == Null::Zero {
            write_zero(self.number, self.kind, self.out);
        }
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        if self.kind != Kind::Bool {
            return Err(E::invalid_type(Unexpected::Bool(value), &self));
        }
        wire::number(self.out, self.number, value.into());
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        match self.kind {
            Kind::Int32 | Kind::Int64 => wire::number(self.out, self.number, value),
            Kind::IntOrString => int_or_string(self.number, &IntOrString::Int(value), self.out),
            _ => return Err(E::invalid_type(Unexpected::Signed(value), &self)),
        }
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => Err(E::invalid_value(Unexpected::Unsigned(value), &self)),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        let (number, out) = (self.number, &mut *self.out);
        match self.kind {
            Kind::String(_) => wire::bytes(out, number, text),
            Kind::Bytes => wire::bytes(out, number, STANDARD.decode(text).unwrap_or_default()),
            Kind::Quantity => quantity(number, text, out),
            Kind::IntOrString => int_or_string(number, &IntOrString::String(text), out),
            Kind::Time | Kind::MicroTime => timestamp(number, text, out),
            _ => return Err(E::invalid_type(Unexpected::Str(text), &self)),
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if self.kind != Kind::Strings {
            return Err(A::Error::invalid_type(Unexpected::Seq, &self));
        }
        wire::try_message(self.out, self.number, |out| {
            while let Some(text) = list.next_element::<String>()? {
                wire::bytes(out, 1, text);
            }
            Ok(())
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let of = match self.kind {
            Kind::Struct(name) => name.find(),
            _ => None,
        };
        let Some(of) = of else {
            return Err(A::Error::invalid_type(Unexpected::Map, &self));
        };
        wire::try_message(self.out, self.number, |out| {
            Message { of, out }.visit_map(map)
        })
    }
}

/// Appends Go's zero value.
pub(super) fn write_zero(number: u32, kind: Kind, out: &mut Vec<u8>) {
    match kind {
        Kind::Int32 | Kind::Int64 | Kind::Bool => wire::number(out, number, 0),
        Kind::Quantity => quantity(number, "", out),
        Kind::IntOrString => int_or_string(number, &IntOrString::Int(0), out),
        Kind::Struct(name) => wire::message(out, number, |out| {
            if let Some(of) = name.find() {
                Message { of, out }.write_zero();
            }
        }),
        Kind::String(_)
        | Kind::Bytes
        | Kind::Time
        | Kind::MicroTime
        | Kind::Raw
        | Kind::Json
        | Kind::Strings => wire::bytes(out, number, []),
    }
}

fn quantity(number: u32, text: &str, out: &mut Vec<u8>) {
    let text = if text.is_empty() { "0" } else { text };
    wire::message(out, number, |out| wire::bytes(out, 1, text));
}

enum IntOrString<'a> {
    Int(i64),
    String(&'a str),
}

fn int_or_string(number: u32, value: &IntOrString<'_>, out: &mut Vec<u8>) {
    let (kind, int, string) = match value {
        IntOrString::Int(int) => (0, *int, ""),
        IntOrString::String(string) => (1, 0, *string),
    };
    wire::message(out, number, |out| {
        wire::number(out, 1, kind);
        wire::number(out, 2, int);
        wire::bytes(out, 3, string);
    });
}

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Appends a time; the zero time is an empty message.
fn timestamp(number: u32, text: &str, out: &mut Vec<u8>) {
    wire::message(out, number, |out| {
        if let Ok(time) = time::parse(text) {
            let nanos = i64::from(time.subsec_nanosecond());
            // Go counts the nanoseconds forward, also before 1970.
            wire::number(out, 1, time.as_second() - i64::from(nanos < 0));
            wire::number(out, 2, nanos.rem_euclid(NANOS_PER_SECOND));
        }
    });
}
