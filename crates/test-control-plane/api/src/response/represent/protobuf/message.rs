//! Encoding of a JSON object as a message, in one pass over its text: the message, its fields, and
//! their values.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube_apimachinery::schema::{Field, Kind, Shape, Tag, Type};
use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde_json::value::RawValue;

use super::scalar::{IntOrString, int_or_string, quantity, timestamp};
use crate::go::wire;

/// Appends the fields of an object of a type; those of its zero value for null.
pub(super) struct Message<'o> {
    pub(super) of: &'static Type,
    pub(super) out: &'o mut Vec<u8>,
}

impl Message<'_> {
    /// Appends the fields of the zero value.
    pub(super) fn write_zero(self) {
        Fields::new(self.of, self.out).finish(self.out);
    }
}

impl<'de> DeserializeSeed<'de> for Message<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Message<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object of the type {}", self.of.name)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.write_zero();
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { of, out } = self;
        let mut fields = Fields::new(of, out);
        while let Some(found) = map.next_key_seed(FieldIndex(of))? {
            let Some((index, number)) = found else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let start = out.len();
            let Field { kind, shape, .. } = of.fields[index];
            map.next_value_seed(Member {
                number,
                kind,
                shape,
                out,
            })?;
            fields.written[index] = Some(start..out.len());
        }
        fields.finish(out);
        Ok(())
    }
}

/// The fields of a message, at the end of the output, in the order of the text.
struct Fields {
    of: &'static Type,
    /// Start of the message.
    start: usize,
    /// The place of each field, by its index in the type.
    written: Vec<Option<Range<usize>>>,
}

impl Fields {
    fn new(of: &'static Type, out: &[u8]) -> Self {
        let written = vec![None; of.fields.len()];
        Self {
            of,
            start: out.len(),
            written,
        }
    }

    /// Adds the missing fields that Go writes, and sorts all by number.
    fn finish(self, out: &mut Vec<u8>) {
        let mut fields: Vec<(Tag, Range<usize>)> = Vec::with_capacity(self.written.len());
        for (field, written) in self.of.fields.iter().zip(self.written) {
            let Some(tag) = field.tag else { continue };
            let place = written.unwrap_or_else(|| {
                let start = out.len();
                if field.shape == Shape::Plain && field.kind != Kind::Bytes {
                    write_zero(tag.number, field.kind, out);
                }
                start..out.len()
            });
            fields.push((tag, place));
        }
        fields.sort_unstable_by_key(|(tag, _)| tag.path());
        let mut sorted = Vec::with_capacity(out.len() - self.start);
        append(&fields, 0, out, &mut sorted);
        out.truncate(self.start);
        out.append(&mut sorted);
    }
}

/// Appends written fields in order. Those of a struct that Go embeds at this level form a separate
/// message.
fn append(fields: &[(Tag, Range<usize>)], level: usize, written: &[u8], sorted: &mut Vec<u8>) {
    let outer = |tag: &Tag| tag.outer.get(level).copied().flatten();
    for group in fields.chunk_by(|(a, _), (b, _)| outer(a).is_some() && outer(a) == outer(b)) {
        let Some((first, place)) = group.first() else {
            continue;
        };
        match outer(first) {
            Some(embedded) => wire::message(sorted, embedded, |sorted| {
                append(group, level + 1, written, sorted);
            }),
            None => sorted.extend_from_slice(&written[place.clone()]),
        }
    }
}

/// Reads a field's name as its index and its number; `None` if there is no such field.
struct FieldIndex(&'static Type);

impl<'de> DeserializeSeed<'de> for FieldIndex {
    type Value = Option<(usize, u32)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for FieldIndex {
    type Value = Option<(usize, u32)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        let mut fields = self.0.fields.iter().enumerate();
        let found = fields.find(|(_, field)| field.name == name);
        Ok(found.and_then(|(index, field)| Some((index, field.tag?.number))))
    }
}

/// Appends the value of a field, or all values of a list or a map.
pub(super) struct Member<'o> {
    pub(super) number: u32,
    pub(super) kind: Kind,
    pub(super) shape: Shape,
    pub(super) out: &'o mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for Member<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let Self {
            number,
            kind,
            shape,
            out,
        } = self;
        let null = match shape {
            Shape::List | Shape::Map => {
                return deserializer.deserialize_any(Repeated { number, kind, out });
            }
            Shape::Plain if kind != Kind::Bytes => Null::Zero,
            Shape::Plain | Shape::Pointer => Null::Absent,
        };
        OneValue {
            number,
            kind,
            null,
            out,
        }
        .deserialize(deserializer)
    }
}

/// Appends one field per element of a list or entry of a map; nothing for null.
struct Repeated<'o> {
    number: u32,
    kind: Kind,
    out: &'o mut Vec<u8>,
}

impl<'de> Visitor<'de> for Repeated<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or a map")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { number, kind, out } = self;
        loop {
            let null = Null::Zero;
            let element = OneValue {
                number,
                kind,
                null,
                out,
            };
            if list.next_element_seed(element)?.is_none() {
                return Ok(());
            }
        }
    }

    /// Sorts the entries by key, as Go does.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { number, kind, out } = self;
        let start = out.len();
        let mut entries: BTreeMap<String, Range<usize>> = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            let start = out.len();
            wire::try_message(out, number, |out| {
                wire::bytes(out, 1, &key);
                let null = Null::Zero;
                map.next_value_seed(OneValue {
                    number: 2,
                    kind,
                    null,
                    out,
                })
            })?;
            entries.insert(key, start..out.len());
        }
        let mut sorted = Vec::with_capacity(out.len() - start);
        for place in entries.into_values() {
            sorted.extend_from_slice(&out[place]);
        }
        out.truncate(start);
        out.append(&mut sorted);
        Ok(())
    }
}

/// Appends a value as a field.
struct OneValue<'o> {
    number: u32,
    kind: Kind,
    null: Null,
    out: &'o mut Vec<u8>,
}

/// The encoding of null.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Null {
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
fn write_zero(number: u32, kind: Kind, out: &mut Vec<u8>) {
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
        | Kind::Float
        | Kind::Either(..)
        | Kind::Strings => wire::bytes(out, number, []),
    }
}
